// The page without its program, its session, or a user who looks.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  banner,
  details,
  eventually,
  nextRequests,
  roundTrip,
  row,
  useMockedPage,
  view,
} from "./support.mjs";

const open = useMockedPage();

describe("a page without its program", () => {
  test("says so, and recovers by itself", () =>
    open(
      "states",
      { allowed: /ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE/ },
      async ({ page, backend }) => {
        await row(page, "github").waitFor();
        await backend.goDown();
        await banner(page)
          .getByText(/^dormouse ui has ended\..* again\. Last update: \d\d:\d\d:\d\d\.$/)
          .waitFor();
        await backend.comeBack();
        await eventually(() => banner(page).textContent(), "");
      },
    ));

  test("says that its session has ended, polls less often, and recovers", () =>
    open("states", { hasClock: true, allowed: /401/ }, async ({ page, backend }) => {
      await row(page, "github").waitFor();
      await page.clock.pauseAt(new Date(Date.now() + 60_000));
      await roundTrip(page);
      backend.endSession();
      const polls = () => backend.requests("overview").length;
      const pass = async (milliseconds) => {
        await page.clock.runFor(milliseconds);
        await roundTrip(page);
      };
      await pass(1000);
      await banner(page)
        .getByText("The session of this page has ended: run `dormouse ui` again.")
        .waitFor();
      assert.equal(await banner(page).getByRole("link").count(), 0);
      const before = polls();
      await pass(1900);
      assert.equal(polls(), before);
      await pass(200);
      assert.equal(polls(), before + 1);
      backend.resumeSession();
      await page.clock.resume();
      await eventually(() => banner(page).textContent(), "");
    }));

  test("links to the sign-in if there is one", () =>
    open("states", { allowed: /401/ }, async ({ page, backend }) => {
      backend.changeWorld({ hasSignIn: true });
      await row(page, "github").waitFor();
      await nextRequests(backend, "overview", 2);
      backend.endSession();
      await banner(page).getByText("The session of this page has ended: sign in again.").waitFor();
      const link = banner(page).getByRole("link", { name: "Sign in" });
      assert.equal(await link.getAttribute("href"), "../sign-in");
    }));

  test("says that dormouse does not answer in time", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "github").waitFor();
      await page.evaluate(() => {
        AbortSignal.timeout = () => AbortSignal.abort(new DOMException("late", "TimeoutError"));
      });
      await banner(page)
        .getByText("dormouse does not answer. The page tries again by itself.")
        .waitFor();
    }));

  test("shows its banner in an open dialog, too", () =>
    open("states", { fragment: "#servers/github", allowed: /401/ }, async ({ page, backend }) => {
      await details(page, "github").getByText("dormouse is connected to it.").waitFor();
      backend.endSession();
      await details(page, "github")
        .getByRole("alert")
        .getByText("The session of this page has ended")
        .waitFor();
      await page.keyboard.press("Escape");
      await banner(page).getByText("The session of this page has ended").waitFor();
    }));

  test("keeps its rate if only the calls or the savings fail", () =>
    open("states", { fragment: "#calls", allowed: /500/ }, async ({ page, backend }) => {
      backend.failRequests("calls", "the call log cannot be read");
      const region = page.getByRole("region", { name: "Calls", exact: true });
      const reason = region.getByText("The calls cannot be read: the call log cannot be read.");
      await reason.waitFor();
      await nextRequests(backend, "overview", 4);
      assert.equal(await banner(page).textContent(), "");
      backend.failRequests("calls", null);
      await reason.waitFor({ state: "hidden" });
      backend.failRequests("savings", "the savings cannot be read");
      await page.reload();
      await view(page, "Savings").click();
      await page.getByText("The savings cannot be read: the savings cannot be read").waitFor();
    }));

  test("an action that cannot be sent fails with a reason", () =>
    open("states", { allowed: /ERR_/ }, async ({ page, backend }) => {
      await row(page, "github").waitFor();
      await backend.goDown();
      await row(page, "github").getByRole("button", { name: "Sleep github" }).click();
      await row(page, "github").getByText("Sleep failed: dormouse cannot be reached").waitFor();
    }));

  test("does not poll while it is hidden, and polls at once when it is visible", () =>
    open("states", { hasClock: true }, async ({ page, backend }) => {
      await row(page, "github").waitFor();
      const setVisibility = (state) =>
        page.evaluate((value) => {
          Object.defineProperty(document, "hidden", {
            configurable: true,
            get: () => value === "hidden",
          });
          document.dispatchEvent(new Event("visibilitychange"));
        }, state);
      await page.clock.pauseAt(new Date(Date.now() + 60_000));
      await roundTrip(page);
      await setVisibility("hidden");
      const before = backend.requests("overview").length;
      await page.clock.runFor(30_000);
      await roundTrip(page);
      assert.equal(backend.requests("overview").length, before);
      await setVisibility("visible");
      await eventually(() => backend.requests("overview").length, before + 1);
    }));
});

// The list of servers, and the actions on them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  details,
  eventually,
  focusedName,
  nextRequests,
  roundTrip,
  row,
  tabTo,
  useMockedPage,
} from "./support.mjs";

const open = useMockedPage();

describe("the list of servers", () => {
  test("shows each state as a word, with counts and the last error", () =>
    open("states", {}, async ({ page }) => {
      const states = {
        github: "Awake",
        browser: "Asleep",
        memory: "Unloaded",
        postgres: "Loading",
        sentry: "Evicted",
        metrics: "Backing off",
        linear: "Awaiting login",
        filesystem: "Off",
      };
      for (const [name, state] of Object.entries(states))
        await row(page, name).getByText(state, { exact: true }).waitFor();
      const github = row(page, "github");
      assert.match(
        await github.textContent(),
        /Repositories and issues.*Awake.*33.*2 changed, 1 blocked.*6,840.*73 MB.*12.*1 failed/s,
      );
      await row(page, "metrics").getByText("2 failed loads, tries again in 8 s").waitFor();
      await row(page, "sentry")
        .getByText("Last error: initialize: no answer within 30 s")
        .waitFor();
    }));

  test("offers only the actions that make sense", () =>
    open("states", {}, async ({ page }) => {
      const offered = {
        github: ["Sleep"],
        browser: ["Wake"],
        memory: ["Wake"],
        broken: ["Wake", "Reset"],
        sentry: ["Reset"],
        metrics: ["Wake", "Reset"],
        linear: ["Log in"],
        postgres: [],
        filesystem: [],
        notion: ["Sleep"],
      };
      for (const [name, labels] of Object.entries(offered)) {
        await row(page, name).waitFor();
        assert.deepEqual(await row(page, name).getByRole("button").allTextContents(), labels, name);
      }
    }));

  test("filters by name, description and state", () =>
    open("states", {}, async ({ page }) => {
      const filter = page.getByRole("searchbox", { name: "Filter servers" });
      const names = () => page.getByRole("rowheader").getByRole("link").allTextContents();
      await row(page, "github").waitFor();
      for (const [text, expected] of [
        ["GITH", ["github"]],
        ["live web", ["browser"]],
        ["evicted", ["sentry"]],
        ["backing", ["metrics"]],
      ]) {
        await filter.fill(text);
        assert.deepEqual(await names(), expected, text);
      }
      await page.getByRole("status").getByText("1 of 11 servers").waitFor();
      await filter.fill("no such thing");
      await page.getByText("No server matches the filter.").waitFor();
    }));

  test("shows only the servers that need attention", () =>
    open("states", {}, async ({ page }) => {
      await page.getByRole("checkbox", { name: "Only servers that need attention (4)" }).check();
      assert.deepEqual(await page.getByRole("rowheader").getByRole("link").allTextContents(), [
        "github",
        "sentry",
        "metrics",
        "linear",
      ]);
    }));

  test("says how to begin if there is no server", () =>
    open("empty", {}, async ({ page }) => {
      await page.getByText("The config has no servers.").waitFor();
      await page.getByText("No tokens saved yet.").first().waitFor();
    }));

  test("a server that dies changes in place: focus, scroll position and selection stay", () =>
    open("many", { height: 600 }, async ({ page, backend }) => {
      const dying = row(page, "server-061");
      await dying.getByRole("button").focus();
      await dying.getByRole("paragraph").first().selectText();
      await page.evaluate(() => (globalThis.watchedRow = document.activeElement.closest("tr")));
      const scroll = await page.evaluate(() => scrollY);
      assert.ok(scroll > 500);
      backend.changeServer("server-061", {
        state: "asleep",
        memory: null,
        lastError: "the process ended: signal 9",
      });
      await dying.getByText("Last error: the process ended: signal 9").waitFor();
      await dying.getByText("Asleep").waitFor();
      assert.equal(await focusedName(page), "Wake server-061");
      assert.equal(
        await page.evaluate(() => getSelection().toString()),
        "server-061 for tests. Use when a task needs server-061.",
      );
      assert.equal(await page.evaluate(() => scrollY), scroll);
      assert.ok(await page.evaluate(() => globalThis.watchedRow.isConnected));
    }));

  test("polls change nothing in the document while nothing happens", () =>
    open("many", {}, async ({ page, backend }) => {
      await row(page, "server-100").waitFor();
      await page
        .getByRole("banner")
        .getByText(/tokens saved/)
        .waitFor();
      await page.evaluate(() => {
        globalThis.changes = 0;
        new MutationObserver((records) => (globalThis.changes += records.length)).observe(
          document.body,
          { subtree: true, childList: true, characterData: true, attributes: true },
        );
      });
      await nextRequests(backend, "overview", 3);
      assert.equal(await page.evaluate(() => globalThis.changes), 0);
    }));

  test("an update reaches each of 100 servers, while the user types in the filter", () =>
    open("many", {}, async ({ page, backend }) => {
      await row(page, "server-100").waitFor();
      for (let index = 1; index <= 100; index += 1)
        backend.changeServer(`server-${String(index).padStart(3, "0")}`, { calls: 1000 + index });
      await page.getByRole("searchbox", { name: "Filter servers" }).pressSequentially("server-04");
      await row(page, "server-100").waitFor({ state: "hidden" });
      await row(page, "server-049").getByText("1,049").waitFor();
    }));

  test("is used by keyboard: filter, wake and open", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "github").waitFor();
      await tabTo(page, "Filter servers");
      await page.keyboard.type("brow");
      await row(page, "github").waitFor({ state: "hidden" });
      await tabTo(page, "Wake browser");
      await page.keyboard.press("Enter");
      await row(page, "browser").getByText("Awake", { exact: true }).waitFor();
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Shift+Tab");
      assert.equal(await focusedName(page), "browser");
      await page.keyboard.press("Enter");
      await details(page, "browser").waitFor();
    }));
});

describe("an action", () => {
  test("says that it runs, then the server is awake and the focus stays", () =>
    open("states", {}, async ({ page, backend }) => {
      const release = backend.hold("load");
      await row(page, "slow").getByRole("button", { name: "Wake slow" }).press("Enter");
      const running = row(page, "slow").getByRole("button", { name: "Waking… slow" });
      await running.waitFor();
      assert.equal(await running.isDisabled(), true);
      await row(page, "slow").getByRole("status").getByText("Waking…").waitFor();
      release();
      await row(page, "slow").getByText("Awake", { exact: true }).waitFor();
      await row(page, "slow").getByRole("status").getByText("Awake.").waitFor();
      assert.equal(await focusedName(page), "Sleep slow");
      await page.keyboard.press("Enter");
      await row(page, "slow").getByText("Asleep", { exact: true }).waitFor();
    }));

  test("that fails shows its reason next to the button", () =>
    open("states", { allowed: /409/ }, async ({ page }) => {
      await row(page, "broken").getByRole("button", { name: "Wake broken" }).click();
      await row(page, "broken")
        .getByRole("status")
        .getByText("Wake failed: cannot start the process `npx -y no-such-package`: exit code 1")
        .waitFor();
      await row(page, "broken").getByText("2 failed loads").waitFor();
    }));

  test("that failed is forgotten when the state changes", () =>
    open("states", { allowed: /409/ }, async ({ page, backend }) => {
      const status = row(page, "broken").getByRole("status").first();
      await row(page, "broken").getByRole("button", { name: "Wake broken" }).click();
      await status.getByText("Wake failed").waitFor();
      await nextRequests(backend, "overview", 2);
      assert.match(await status.textContent(), /^Wake failed/);
      backend.changeServer("broken", { state: "awake", strikes: 0, lastError: null });
      await eventually(() => status.textContent(), "");
    }));

  test("is not undone by the second click of a double click", () =>
    open("states", {}, async ({ page, backend }) => {
      const button = row(page, "browser").getByRole("button");
      const { x, y, width, height } = await button.boundingBox();
      await page.evaluate(() => {
        globalThis.clicks = [];
        addEventListener("click", ({ detail }) => globalThis.clicks.push(detail));
      });
      await page.mouse.move(x + width / 2, y + height / 2);
      await page.mouse.down({ clickCount: 1 });
      await page.mouse.up({ clickCount: 1 });
      await row(page, "browser").getByRole("status").getByText("Awake.").waitFor();
      assert.equal(await focusedName(page), "Sleep browser");
      await page.mouse.down({ clickCount: 2 });
      await page.mouse.up({ clickCount: 2 });
      assert.deepEqual(await page.evaluate(() => globalThis.clicks), [1, 2]);
      await roundTrip(page);
      assert.deepEqual(backend.requests("POST"), ["POST api/servers/browser/load"]);
    }));

  test("Reset clears the failed loads and keeps the focus in the row", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "sentry").getByRole("button", { name: "Reset sentry" }).press("Enter");
      await row(page, "sentry").getByText("Unloaded").waitFor();
      await row(page, "sentry")
        .getByRole("status")
        .getByText("Failed loads are cleared.")
        .waitFor();
      assert.equal(await focusedName(page), "Wake sentry");
    }));

  test("the switch turns a server off and on", () =>
    open("states", {}, async ({ page }) => {
      const control = row(page, "browser").getByRole("switch", { name: "Enable browser" });
      assert.equal(await control.isChecked(), true);
      await control.press("Space");
      await row(page, "browser").getByText("Off", { exact: true }).waitFor();
      assert.equal(await control.isChecked(), false);
      await control.press("Space");
      await row(page, "browser").getByText("Unloaded").waitFor();
    }));

  test("Log in offers a link that the user opens in a new tab, then shows a failure", () =>
    open("states", {}, async ({ page, backend }) => {
      await row(page, "linear").getByRole("button", { name: "Log in linear" }).click();
      const link = row(page, "linear")
        .getByRole("status")
        .getByRole("link", { name: "Open the login page of login.example" });
      assert.equal(await link.getAttribute("href"), "https://login.example/authorize?x=1");
      assert.equal(await link.getAttribute("target"), "_blank");
      assert.match(await link.getAttribute("rel"), /noopener noreferrer/);
      await row(page, "linear").getByText("Waiting for the login.").waitFor();
      backend.changeServer("linear", {
        loginProgress: { state: "failed", error: "access_denied" },
      });
      await row(page, "linear").getByText("The login failed: access_denied").waitFor();
      await link.waitFor({ state: "hidden" });
    }));

  test("Share and Do not share follow the isolation", () =>
    open("states", { fragment: "#servers/browser" }, async ({ page, backend }) => {
      const dialog = details(page, "browser");
      await dialog.getByText("Automatic: sessions share a process if that is safe").waitFor();
      await dialog.getByRole("button", { name: "Do not share browser" }).click();
      await dialog.getByText("Each session has its own process", { exact: true }).waitFor();
      await dialog
        .getByRole("button", { name: "Do not share browser" })
        .waitFor({ state: "hidden" });
      await dialog.getByRole("button", { name: "Share browser" }).click();
      await dialog.getByText("Sessions share one process").waitFor();
      assert.equal(backend.requests("isolation").length, 2);
    }));

  test("a server without a process cannot be shared", () =>
    open("states", { fragment: "#servers/notion" }, async ({ page }) => {
      const dialog = details(page, "notion");
      await dialog
        .getByText(
          /^at https:\/\/auth\.notion\.example; scopes read, write;.* renewed automatically$/,
        )
        .waitFor();
      await dialog.getByRole("button", { name: "Log in again notion" }).waitFor();
      assert.equal(await dialog.getByRole("button", { name: /share/i }).count(), 0);
    }));

  test("that is slow leaves connections to polls and to other actions", () =>
    open("many", {}, async ({ page, backend }) => {
      const names = ["003", "007", "011", "015", "019", "023", "027"];
      const release = backend.hold("load");
      for (const name of names)
        await row(page, `server-${name}`)
          .getByRole("button", { name: `Wake server-${name}` })
          .click();
      await row(page, "server-001").getByRole("button", { name: "Sleep server-001" }).click();
      await row(page, "server-001").getByText("Asleep", { exact: true }).waitFor();
      assert.equal(backend.requests("load").length, 3);
      release();
      await eventually(() => backend.requests("load").length, names.length);
      await row(page, "server-027").getByText("Awake", { exact: true }).waitFor();
    }));
});

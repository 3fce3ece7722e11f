// Text from servers and hosts that attacks the page or its user.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  details,
  eventually,
  openDetails,
  queryBox,
  tools,
  useMockedPage,
  view,
} from "./support.mjs";

const open = useMockedPage();

describe("hostile text", () => {
  const MARKUP = "<img src=x onerror=\"document.title='hacked'\">";

  test("is shown as text, with hidden characters revealed", () =>
    open("hostile", {}, async ({ page }) => {
      await page.getByRole("link", { name: MARKUP, exact: true }).waitFor();
      await page.getByRole("link", { name: "evil [U+202E]gnirts desrever[U+202C]" }).waitFor();
      await page.getByText("The address of the login page is not a web address.").waitFor();
      for (const name of ["Calls", "Search", "Savings"]) {
        await view(page, name).click();
        if (name === "Search") await queryBox(page).fill("script");
        await page.getByText(MARKUP).first().waitFor();
      }
      assert.equal(
        await page.locator("main img, main script, dialog img, dialog script").count(),
        0,
      );
      assert.equal(await page.locator('a[href^="javascript:"]').count(), 0);
      assert.doesNotMatch(await page.title(), /hacked/);
    }));

  test("in details is shown as text, and a tool named .. is switched as any other", () =>
    open("hostile", {}, async ({ page, backend }) => {
      const dialog = await openDetails(page, MARKUP);
      await dialog.getByText(`[U+001B][31mred[U+001B][0m [U+202E]abc`).waitFor();
      await dialog
        .getByText(
          "a[U+034F]b[U+180B]c[U+2800]d[U+FE00]e[U+FFF0]f[U+1D173]g[U+E0100]h[U+E0FFF]i " +
            "❤\uFE0F 1\uFE0F\u20E3 x[U+FE0F] 👩\u200D🚀",
        )
        .waitFor();
      await dialog.getByText("The first of two.").waitFor();
      await dialog.getByText("The second of two.").waitFor();
      const bare = tools(page, MARKUP).filter({ hasText: "bare" });
      assert.equal(await bare.getByRole("button").count(), 0);
      await dialog.getByRole("switch", { name: "Show .. to agents" }).click();
      await eventually(
        () => dialog.getByRole("switch", { name: "Show .. to agents" }).isChecked(),
        false,
      );
      assert.match(backend.requests("POST").join(), /^POST api\/servers\/[^/]+\/tool-enabled$/);
      await dialog.getByRole("switch", { name: "Show a/b?c#d%2e to agents" }).click();
      await eventually(
        () => dialog.getByRole("switch", { name: "Show a/b?c#d%2e to agents" }).isChecked(),
        false,
      );
      await dialog.getByRole("insertion").getByText("[U+202E]").waitFor();
      assert.equal(await page.locator("dialog img").count(), 0);
    }));

  test("in a call's detail is shown as text", () =>
    open("hostile", { fragment: "#calls" }, async ({ page }) => {
      await page.getByRole("button", { name: MARKUP }).click();
      await details(page, MARKUP).getByText("not JSON <b>").waitFor();
      await details(page, MARKUP)
        .getByText(/"a": "\[U\+202E\]<b>"/)
        .waitFor();
    }));

  test("a server whose name has characters of an address can be opened and switched", () =>
    open("hostile", {}, async ({ page, backend }) => {
      const dialog = await openDetails(page, "50%/?#&");
      await dialog.getByRole("switch", { name: "Enable 50%/?#&" }).click();
      await eventually(
        () => dialog.getByRole("switch", { name: "Enable 50%/?#&" }).isChecked(),
        false,
      );
      assert.deepEqual(backend.requests("POST"), ["POST api/servers/50%25%2F%3F%23%26/enabled"]);
    }));
});

// The head of the page, and the way between its views.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  details,
  eventually,
  focusedName,
  openDetails,
  row,
  useMockedPage,
  view,
} from "./support.mjs";

const open = useMockedPage();

describe("the head of the page", () => {
  test("names the config, the processes with their hosts, and the saved tokens", () =>
    open("states", {}, async ({ page }) => {
      const head = page.getByRole("banner");
      await head.getByText("/home/user/.config/dormouse/dormouse.json").waitFor();
      await head
        .getByText(
          "One dormouse is running: process 812 with 2 hosts (claude-code 2.1.0, opencode 1.0).",
        )
        .waitFor();
      await head.getByText(/^About .* million tokens saved in 450 turns\.$/).waitFor();
    }));

  test("says that no dormouse is running", () =>
    open("none", {}, async ({ page }) => {
      await page.getByRole("banner").getByText("No dormouse is running.").waitFor();
      await row(page, "github").getByText("Not running").waitFor();
      assert.equal(await page.getByRole("button", { name: /^(Wake|Sleep|Reset) / }).count(), 0);
      await row(page, "filesystem").getByText("Off", { exact: true }).waitFor();
      assert.equal(await row(page, "linear").getByRole("button").count(), 0);
      const dialog = await openDetails(page, "notion");
      await dialog.getByRole("button", { name: "Log in again notion" }).waitFor();
    }));

  test("follows the processes", () =>
    open("states", {}, async ({ page, backend }) => {
      await page.getByText("One dormouse is running").waitFor();
      backend.changeWorld({ processes: [] });
      await page.getByText("No dormouse is running.").waitFor();
    }));

  test("the skip link leads to the content", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "github").waitFor();
      await page.keyboard.press("Tab");
      assert.equal(await focusedName(page), "Skip to content");
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "MAIN");
    }));
});

describe("the views", () => {
  test("are reached by keyboard, and the fragment and the title follow", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "github").waitFor();
      for (const name of ["Calls", "Search", "Savings", "Servers"]) {
        await view(page, name).press("Enter");
        await page.getByRole("region", { name, exact: true }).waitFor();
        assert.equal(await view(page, name).getAttribute("aria-current"), "page");
        assert.equal(new URL(page.url()).hash, `#${name.toLowerCase()}`);
        assert.equal(await page.title(), `${name} – dormouse`);
      }
    }));

  test("a fragment opens its view or the details of its server", () =>
    open("states", { fragment: "#servers/github" }, async ({ page }) => {
      await details(page, "github").waitFor();
      await page.keyboard.press("Escape");
      await details(page, "github").waitFor({ state: "hidden" });
      await eventually(() => new URL(page.url()).hash, "#servers");
      await page.evaluate(() => (location.hash = "#savings"));
      await page.getByRole("region", { name: "Savings" }).waitFor();
    }));

  test("the back button closes the details", () =>
    open("states", { fragment: "#servers" }, async ({ page }) => {
      await openDetails(page, "browser");
      await page.goBack();
      await details(page, "browser").waitFor({ state: "hidden" });
    }));

  test("the back button closes a call, too", () =>
    open("states", { fragment: "#servers" }, async ({ page }) => {
      await view(page, "Calls").click();
      await page.getByRole("button", { name: "list_issues" }).first().click();
      await details(page, "list_issues").waitFor();
      await page.goBack();
      await details(page, "list_issues").waitFor({ state: "hidden" });
      await row(page, "github").waitFor();
    }));

  test("details of a server that does not exist say so", () =>
    open("states", { fragment: "#servers/nothing" }, async ({ page }) => {
      await details(page, "nothing").getByText("This server is not in the config.").waitFor();
      const dialog = details(page, "nothing");
      assert.deepEqual(await dialog.getByRole("button").allTextContents(), ["✕"]);
      assert.equal(await dialog.getByRole("heading", { level: 3 }).count(), 0);
      assert.equal(await dialog.getByText("Loading…").filter({ visible: true }).count(), 0);
    }));
});

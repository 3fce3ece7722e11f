// The search and the savings.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { details, queryBox, tabTo, useMockedPage } from "./support.mjs";

const open = useMockedPage();

describe("the search", () => {
  test("finds what an agent would find, while the user types", () =>
    open("states", { fragment: "#search" }, async ({ page }) => {
      await queryBox(page).pressSequentially("pull request");
      const hit = page.getByRole("listitem").filter({ hasText: "merge_pull_request" });
      await hit.getByText("Merges a pull request.").waitFor();
      await page
        .getByRole("status")
        .getByText(/^\d+ results?, best first$/)
        .waitFor();
      await hit.getByRole("link", { name: "github" }).click();
      await details(page, "github").waitFor();
    }));

  test("finds servers whose tools are not known", () =>
    open("states", { fragment: "#search" }, async ({ page }) => {
      await queryBox(page).fill("memory");
      const hit = page
        .getByRole("region", { name: "Search" })
        .getByRole("listitem")
        .filter({ hasText: "its tools are known once it is loaded" });
      await hit.getByRole("link", { name: "memory" }).waitFor();
    }));

  test("is used by keyboard", () =>
    open("states", { fragment: "#search" }, async ({ page }) => {
      await page.getByRole("region", { name: "Search" }).waitFor();
      await tabTo(page, "What would an agent find?");
      await page.keyboard.type("pull request");
      await tabTo(page, "Search");
      await page.keyboard.press("Enter");
      await page.getByRole("listitem").filter({ hasText: "merge_pull_request" }).waitFor();
      await tabTo(page, "github");
      await page.keyboard.press("Enter");
      await details(page, "github").waitFor();
    }));

  test("says that nothing was found", () =>
    open("states", { fragment: "#search" }, async ({ page }) => {
      await queryBox(page).fill("xyzzy");
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByText("No tool found.").waitFor();
    }));

  test("shows the reason if no dormouse runs", () =>
    open("none", { fragment: "#search", allowed: /409/ }, async ({ page }) => {
      await queryBox(page).fill("issue");
      await page.keyboard.press("Enter");
      await page.getByText("The search failed: no dormouse is running that could search").waitFor();
    }));
});

describe("the savings", () => {
  test("are shown in all, by server and with the estimator", () =>
    open("states", { fragment: "#savings" }, async ({ page }) => {
      const section = page.getByRole("region", { name: "Savings", exact: true });
      await section.getByText(/^About .* tokens saved in 450 turns\.$/).waitFor();
      await section.getByText("The numbers are estimates (4 bytes per token).").waitFor();
      const servers = section.getByRole("table", { name: "Tokens saved by server" });
      assert.equal(await servers.getByRole("row").nth(1).textContent(), "github200,000");
      await section.getByText("Since the running processes started.").waitFor();
    }));

  test("are those since the processes started if there is no log", () =>
    open("states", { fragment: "#savings" }, async ({ page, backend }) => {
      const savings = { estimator: "", turns: 1, tokens: 1, servers: [], hours: [] };
      backend.changeWorld({ savings });
      await page.reload();
      const section = page.getByRole("region", { name: "Savings", exact: true });
      await section.getByText("About 1 token saved in 1 turn.").waitFor();
      assert.equal(
        await section
          .getByText(/estimates/)
          .filter({ visible: true })
          .count(),
        0,
      );
    }));

  test("of an hour with one turn are named in the chart", () =>
    open("states", { fragment: "#savings" }, async ({ page, backend }) => {
      const start = Math.floor(Date.now() / 3_600_000) * 3600;
      const savings = { estimator: "test", turns: 9, tokens: 9, servers: [] };
      backend.changeWorld({ savings: { ...savings, hours: [{ start, turns: 1, tokens: 500 }] } });
      await page.reload();
      await page.getByText("About 500 tokens saved in 1 turn.").first().waitFor();
      await page.getByRole("img", { name: /^Tokens saved by hour/ }).waitFor();
      const titles = await page.getByRole("img").locator("title").allTextContents();
      assert.match(titles.at(-1), /: 500 tokens in 1 turn$/);
    }));

  test("over time have a chart with a name, a table, and two periods", () =>
    open("states", { fragment: "#savings" }, async ({ page }) => {
      await page
        .getByRole("img", {
          name: /^Tokens saved by hour in the last 24 hours: .* in all, most in /,
        })
        .waitFor();
      await page.getByRole("radio", { name: "Last 14 days" }).check();
      const chart = page.getByRole("img", { name: /^Tokens saved by day in the last 14 days/ });
      await chart.waitFor();
      await page.getByText("Show as a table").press("Enter");
      const times = page
        .getByRole("group", { name: "Tokens saved over time, as a table" })
        .getByRole("row");
      assert.ok((await times.count()) > 8);
    }));
});

// The details of a server.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  details,
  eventually,
  focusedName,
  nextRequests,
  openDetails,
  roundTrip,
  row,
  tabTo,
  tools,
  useMockedPage,
} from "./support.mjs";

const open = useMockedPage();

describe("the details of a server", () => {
  test("open by keyboard, close by Escape and return the focus", () =>
    open("states", {}, async ({ page }) => {
      await page.getByRole("link", { name: "browser", exact: true }).press("Enter");
      const dialog = details(page, "browser");
      await dialog.getByText("dormouse is not connected to it. The next call wakes it.").waitFor();
      for (let index = 0; index < 12; index += 1) {
        await page.keyboard.press("Tab");
        assert.ok(
          await page.evaluate(
            () =>
              // The browser's own controls follow the last control of the dialog.
              document.activeElement === document.body ||
              Boolean(document.activeElement.closest("dialog")),
          ),
        );
      }
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });
      assert.equal(await focusedName(page), "browser");
    }));

  test("close by their button and by a click outside", () =>
    open("states", {}, async ({ page }) => {
      const dialog = await openDetails(page, "browser");
      await dialog.getByRole("button", { name: "Close" }).click();
      await dialog.waitFor({ state: "hidden" });
      await openDetails(page, "browser");
      await page.mouse.click(50, 500);
      await dialog.waitFor({ state: "hidden" });
    }));

  test("stay open when a drag that began in them ends outside", () =>
    open("states", {}, async ({ page }) => {
      const dialog = await openDetails(page, "browser");
      const { x, y } = await dialog.getByText("dormouse is not connected to it.").boundingBox();
      await page.evaluate(() => {
        globalThis.clicked = [];
        addEventListener("click", ({ target }) => globalThis.clicked.push(target.tagName));
      });
      await page.mouse.move(x + 50, y + 5);
      await page.mouse.down();
      await page.mouse.move(50, 500);
      await page.mouse.up();
      await eventually(() => page.evaluate(() => globalThis.clicked), ["DIALOG"]);
      assert.equal(await dialog.isVisible(), true);
    }));

  test("show the last known state when dormouse cannot be reached", () =>
    open("states", { allowed: /ERR_/ }, async ({ page, backend }) => {
      const first = await openDetails(page, "github");
      await first.getByRole("list", { name: "Last calls" }).getByRole("button").first().waitFor();
      await eventually(() => tools(page, "github").count(), 36);
      await page.keyboard.press("Escape");
      await backend.goDown();
      const second = await openDetails(page, "memory");
      await second.getByText("Unloaded", { exact: true }).waitFor();
      await second.getByText("dormouse has not connected to it yet.").waitFor();
      await second.getByText("Local process (stdio)").waitFor();
      await second.getByText("The tools cannot be read: dormouse cannot be reached.").waitFor();
      await second
        .getByText("Standard error cannot be read: dormouse cannot be reached.")
        .waitFor();
      await second.getByRole("button", { name: "Wake memory" }).waitFor();
      assert.equal(await second.getByRole("listitem").count(), 0);
      await backend.comeBack();
      await second.getByText("No tools are known yet. Wake the server to read them.").waitFor();
      await second.getByText("memory: listening").waitFor();
      assert.equal(
        await second
          .getByText(/cannot be read/)
          .filter({ visible: true })
          .count(),
        0,
      );
    }));

  test("read tools and changes again after a failure", () =>
    open("states", { fragment: "#servers/github", allowed: /500/ }, async ({ page, backend }) => {
      const dialog = details(page, "github");
      backend.failRequests("tools", "the disk is busy");
      backend.failRequests("changes", "the disk is busy");
      await page.reload();
      await dialog.getByText("The tools cannot be read: the disk is busy.").waitFor();
      await dialog.getByText("The changes cannot be read: the disk is busy.").waitFor();
      backend.failRequests("tools", null);
      backend.failRequests("changes", null);
      await eventually(() => tools(page, "github").count(), 36);
      await dialog.getByRole("button", { name: "Approve create_issue" }).waitFor();
      assert.equal(
        await dialog
          .getByText(/cannot be read/)
          .filter({ visible: true })
          .count(),
        0,
      );
    }));

  test("are read again when only the tokens change", () =>
    open("states", { fragment: "#servers/browser" }, async ({ page, backend }) => {
      await eventually(() => tools(page, "browser").count(), 22);
      backend.changeTool("browser", "browser_tool_1", { description: "Does something else." });
      backend.changeServer("browser", { tokens: 4242 });
      await tools(page, "browser").getByText("Does something else.").waitFor();
    }));

  test("drop an answer that is older than a switch", () =>
    open("states", { fragment: "#servers/browser" }, async ({ page, backend }) => {
      await eventually(() => tools(page, "browser").count(), 22);
      const release = backend.hold("tools");
      backend.changeServer("browser", { tokens: 4242 });
      await nextRequests(backend, "browser/tools", 1);
      backend.letPass("tools");
      const control = details(page, "browser").getByRole("switch", {
        name: "Show browser_tool_2 to agents",
      });
      await control.click();
      await eventually(() => control.isChecked(), false);
      release();
      await nextRequests(backend, "overview", 2);
      assert.equal(await control.isChecked(), false);
    }));

  test("of another server show nothing of the one before", () =>
    open("states", { fragment: "#servers/github", allowed: /409/ }, async ({ page, backend }) => {
      const approve = details(page, "github").getByRole("button", { name: "Approve create_issue" });
      await approve.waitFor();
      backend.changeDefinition("github", "create_issue");
      const release = backend.hold("approve");
      await approve.click();
      await page.evaluate(() => (location.hash = "#servers/notion"));
      await eventually(() => tools(page, "notion").count(), 6);
      release();
      await nextRequests(backend, "overview", 2);
      await details(page, "notion").waitFor();
      assert.equal(await page.getByText(/Approve failed/).count(), 0);
      assert.equal(await details(page, "notion").getByText("Changed tools").isVisible(), false);
    }));

  test("do not hold up the page while standard error is slow", () =>
    open("states", { fragment: "#servers/github" }, async ({ page, backend }) => {
      await eventually(() => tools(page, "github").count(), 36);
      const release = backend.hold("stderr");
      await nextRequests(backend, "stderr", 1);
      const before = backend.requests("stderr").length;
      backend.changeServer("github", { lastError: "seen while standard error is slow" });
      await details(page, "github").getByText("seen while standard error is slow").waitFor();
      await nextRequests(backend, "overview", 2);
      assert.equal(backend.requests("stderr").length, before, "one request at a time");
      release();
      await nextRequests(backend, "stderr", 1);
    }));

  test("say which scopes the server demands in addition", () =>
    open("states", { fragment: "#servers/notion" }, async ({ page }) => {
      await details(page, "notion")
        .getByText(/scopes read, write; the server also demands the scopes admin;/)
        .waitFor();
    }));

  test("are used by keyboard: approve, switch a tool and close", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "github").waitFor();
      await tabTo(page, "github");
      await page.keyboard.press("Enter");
      const dialog = details(page, "github");
      await dialog.getByRole("button", { name: "Approve create_issue" }).waitFor();
      await eventually(() => tools(page, "github").count(), 36);
      await tabTo(page, "Approve create_issue");
      await page.keyboard.press("Enter");
      await dialog.getByText("create_issue is approved.").waitFor();
      await tabTo(page, "Show list_issues to agents");
      await page.keyboard.press("Space");
      await eventually(
        () => dialog.getByRole("switch", { name: "Show list_issues to agents" }).isChecked(),
        false,
      );
      await tabTo(page, "Close");
      await page.keyboard.press("Enter");
      await dialog.waitFor({ state: "hidden" });
      assert.equal(await focusedName(page), "github");
    }));

  test("explain hidden, stale and blocked tools, and warn of hidden characters", () =>
    open("states", { fragment: "#servers/github" }, async ({ page }) => {
      const item = (name) =>
        details(page, "github")
          .getByRole("list", { name: "Tools" })
          .getByRole("listitem")
          .filter({ hasText: name });
      await item("delete_repository")
        .getByText("Hidden: switched off in the config, so agents do not see it.")
        .waitFor();
      await item("old_search")
        .getByText("Stale: the config names it, but the server no longer offers it.")
        .waitFor();
      assert.equal(await item("old_search").getByRole("switch").count(), 0);
      assert.equal(await item("create_issue").getByRole("switch").count(), 1);
      await item("create_issue")
        .getByText("Blocked: its definition changed, so agents do not see it until you approve it.")
        .waitFor();
      await item("get_file")
        .getByText(/Warning: its definition contains the hidden character U\+200B/)
        .waitFor();
      await item("get_file")
        .getByText("Gets a file.[U+200B] It may contain hidden text.")
        .waitFor();
      await item("merge_pull_request").getByText("Changed", { exact: true }).waitFor();
    }));

  test("switch a tool off and on", () =>
    open("states", { fragment: "#servers/github" }, async ({ page, backend }) => {
      const control = details(page, "github").getByRole("switch", {
        name: "Show list_issues to agents",
      });
      await control.press("Space");
      await eventually(() => control.isChecked(), false);
      await details(page, "github")
        .getByText("32 shown, 2 hidden, 1 blocked, 1 stale, 2 changed")
        .waitFor();
      assert.equal(await focusedName(page), "Show list_issues to agents");
      await control.press("Space");
      await eventually(() => control.isChecked(), true);
      assert.equal(backend.requests("POST api/servers/github/tool-enabled").length, 2);
    }));

  test("read the tools again after a switch that failed", () =>
    open("states", { fragment: "#servers/browser", allowed: /500/ }, async ({ page, backend }) => {
      await eventually(() => tools(page, "browser").count(), 22);
      backend.failRequests("tool-enabled", "the config cannot be written");
      backend.changeTool("browser", "browser_tool_3", { description: "Changed meanwhile." });
      await details(page, "browser")
        .getByRole("switch", { name: "Show browser_tool_2 to agents" })
        .click();
      await details(page, "browser")
        .getByText("The switch failed: the config cannot be written")
        .waitFor();
      await tools(page, "browser").getByText("Changed meanwhile.").waitFor();
    }));

  test("filter the tools", () =>
    open("states", { fragment: "#servers/github" }, async ({ page }) => {
      const dialog = details(page, "github");
      const items = dialog.getByRole("list", { name: "Tools" }).getByRole("listitem");
      await eventually(() => items.count(), 36);
      await dialog.getByRole("searchbox", { name: "Filter tools" }).fill("blocked");
      assert.equal(await items.count(), 1);
      await dialog.getByText("1 matching tool (36 in all)").waitFor();
      await dialog.getByRole("searchbox", { name: "Filter tools" }).fill("zzz");
      await dialog.getByText("None of 36 tools matches the filter.").waitFor();
    }));

  test("show 200 of 5,000 tools, and more on demand", () =>
    open("huge", {}, async ({ page }) => {
      const dialog = await openDetails(page, "huge");
      const items = dialog.getByRole("list", { name: "Tools" }).getByRole("listitem");
      await dialog.getByText("The first 200 of 5,000 tools").waitFor();
      assert.equal(await items.count(), 200);
      await dialog.getByRole("button", { name: "Show 200 more" }).press("Enter");
      assert.equal(await items.count(), 400);
      await dialog.getByRole("searchbox", { name: "Filter tools" }).fill("huge_tool_49");
      await dialog.getByText("111 matching tools (5,000 in all)").waitFor();
      assert.equal(await items.count(), 111);
    }));

  test("cut a long description until the user wants all of it", () =>
    open("states", { fragment: "#servers/github" }, async ({ page }) => {
      const item = details(page, "github")
        .getByRole("listitem")
        .filter({ hasText: "list_issues" })
        .first();
      const button = item.getByRole("button", { name: "Show all" });
      const height = () =>
        item
          .getByRole("paragraph")
          .first()
          .evaluate((node) => node.clientHeight);
      await button.waitFor();
      const cut = await height();
      assert.equal(await button.getAttribute("aria-expanded"), "false");
      await button.press("Enter");
      assert.equal(
        await item.getByRole("button", { name: "Show less" }).getAttribute("aria-expanded"),
        "true",
      );
      assert.ok((await height()) > cut);
    }));

  test("show the difference of a changed tool by sign and by element", () =>
    open("states", { fragment: "#servers/github" }, async ({ page }) => {
      const difference = details(page, "github").getByRole("group", {
        name: "Changes to create_issue",
      });
      await difference.getByText("+").waitFor();
      assert.match(
        await difference.getByRole("deletion").textContent(),
        /Creates an issue in a repository\.",$/,
      );
      assert.match(await difference.getByRole("insertion").textContent(), /read ~\/\.ssh\/id_rsa/);
      assert.equal(await difference.getByText("−").count(), 1);
      await details(page, "github")
        .getByText("The earlier definition is not known. This is the whole new one.")
        .waitFor();
    }));

  test("show all definitions of a changed tool, and approve them together", () =>
    open("variants", { fragment: "#servers/runner" }, async ({ page, backend }) => {
      const dialog = details(page, "runner");
      const changes = (number) =>
        dialog.getByRole("group", { name: `Changes to run, definition ${number} of 2` });
      await changes(1).getByText("Runs in /srv/one.").waitFor();
      await changes(2).getByText("Runs in /srv/two.").waitFor();
      await dialog.getByText("Its processes offer different definitions.").waitFor();
      await dialog.getByRole("button", { name: "Approve run" }).click();
      await dialog.getByText("run is approved.").waitFor();
      await eventually(() => dialog.getByRole("button", { name: "Approve run" }).count(), 0);
      assert.equal(backend.requests("approve").length, 1);
    }));

  test("approve changed tools one by one", () =>
    open("states", { fragment: "#servers/github" }, async ({ page }) => {
      const dialog = details(page, "github");
      await dialog.getByRole("button", { name: "Approve create_issue" }).press("Enter");
      await dialog.getByRole("status").getByText("create_issue is approved.").waitFor();
      await dialog
        .getByRole("button", { name: "Approve create_issue" })
        .waitFor({ state: "hidden" });
      await eventually(() => focusedName(page), "Approve merge_pull_request");
      await page.keyboard.press("Enter");
      await dialog.getByRole("status").getByText("merge_pull_request is approved.").waitFor();
      await eventually(() => focusedName(page), "Changed tools");
      await dialog.getByText("34 shown, 1 hidden, 1 stale").waitFor();
    }));

  test("show the newest definition if it changed again before the approval", () =>
    open("states", { fragment: "#servers/github", allowed: /409/ }, async ({ page, backend }) => {
      const dialog = details(page, "github");
      await dialog.getByRole("group", { name: "Changes to create_issue" }).waitFor();
      backend.changeDefinition("github", "create_issue");
      await dialog.getByRole("button", { name: "Approve create_issue" }).click();
      await dialog
        .getByText("Approve failed: the definition has changed again: look at it once more")
        .waitFor();
      await dialog
        .getByRole("group", { name: "Changes to create_issue" })
        .getByText("the newest definition")
        .waitFor();
    }));

  test("follow standard error, but keep a selection in it", () =>
    open("states", { fragment: "#servers/github" }, async ({ page, backend }) => {
      const output = details(page, "github").getByRole("group", { name: "Standard error" });
      await output.getByText("page=39").waitFor();
      backend.writeStderr("github", "a new line");
      await output.getByText("a new line").waitFor();
      await output.selectText();
      backend.writeStderr("github", "another line");
      await nextRequests(backend, "stderr", 2);
      await roundTrip(page);
      assert.match(await page.evaluate(() => getSelection().toString()), /a new line$/);
      await page.evaluate(() => getSelection().removeAllRanges());
      await output.getByText("another line").waitFor();
    }));

  test("list the last calls of the server, each with its detail", () =>
    open("states", { fragment: "#servers/github" }, async ({ page, backend }) => {
      const list = details(page, "github").getByRole("list", { name: "Last calls" });
      await eventually(() => list.getByRole("listitem").count(), 20);
      backend.addCalls({ server: "github", name: "close_issue" });
      await list.getByRole("button", { name: "close_issue" }).press("Enter");
      await details(page, "close_issue").waitFor();
      await page.keyboard.press("Escape");
      await details(page, "close_issue").waitFor({ state: "hidden" });
      await details(page, "github").waitFor();
      assert.equal(await focusedName(page), "close_issue");
    }));

  test("follow a server that dies and one that is removed", () =>
    open("states", { fragment: "#servers/github" }, async ({ page, backend }) => {
      const dialog = details(page, "github");
      await dialog.getByText("dormouse is connected to it.").waitFor();
      backend.changeServer("github", {
        state: "asleep",
        lastError: "the process ended",
        awake: 0,
        memory: null,
      });
      await dialog.getByText("Last error: the process ended").waitFor();
      await dialog.getByRole("button", { name: "Wake github" }).waitFor();
      backend.removeServer("github");
      await dialog.getByText("This server is not in the config.").waitFor();
      assert.equal(await dialog.getByText("Asleep", { exact: true }).isVisible(), false);
      assert.deepEqual(await dialog.getByRole("button").allTextContents(), ["✕"]);
      assert.equal(await dialog.getByRole("heading", { level: 3 }).count(), 0);
    }));
});

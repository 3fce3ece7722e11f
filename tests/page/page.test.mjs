// Tests of the page in a browser. They find elements by role and accessible name, as a user does.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertAccessible, assertFitsWidth, launch } from "./browser.mjs";
import { withPage } from "./mock_page.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const open = (scenario, options, check) => withPage(browser, scenario, options, check);

const view = (page, name) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name });
const row = (page, name) =>
  page
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader").getByRole("link", { name, exact: true }) });
const details = (page, name) => page.getByRole("dialog", { name, exact: true });
const banner = (page) => page.getByRole("main").getByRole("alert");
const queryBox = (page) => page.getByRole("searchbox", { name: "What would an agent find?" });

/** Waits until `read()` returns `expected`; the page changes with its polls. */
async function eventually(read, expected, message) {
  const deadline = Date.now() + 6000;
  let value;
  do {
    value = await read();
    if (expected instanceof RegExp ? expected.test(value) : value === expected) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (Date.now() < deadline);
  assert.fail(`${message ?? "never as expected"}: ${JSON.stringify(value)} instead of ${expected}`);
}

const focusedName = (page) =>
  page.evaluate(
    () =>
      document.activeElement.getAttribute("aria-label") ??
      document.activeElement.textContent.trim(),
  );

async function openDetails(page, name) {
  await page.getByRole("link", { name, exact: true }).click();
  await details(page, name).waitFor();
  return details(page, name);
}

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
      await head.getByText(/^About .* million tokens saved in \d+ turns\.$/).waitFor();
    }));

  test("says that no dormouse is running", () =>
    open("none", {}, async ({ page }) => {
      await page.getByRole("banner").getByText("No dormouse is running.").waitFor();
      await row(page, "github").getByText("Not running").waitFor();
      assert.equal(await page.getByRole("button", { name: /^(Wake|Sleep|Reset) / }).count(), 0);
      await row(page, "linear").getByRole("button", { name: "Log in linear" }).waitFor();
    }));

  test("follows the processes", () =>
    open("states", {}, async ({ page, backend }) => {
      await page.getByText("One dormouse is running").waitFor();
      backend.stopProcesses();
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

  test("details of a server that does not exist say so", () =>
    open("states", { fragment: "#servers/nothing" }, async ({ page }) => {
      await details(page, "nothing").getByText("This server is not in the config.").waitFor();
    }));
});

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
    open("many", {}, async ({ page }) => {
      await row(page, "server-100").waitFor();
      await page.waitForTimeout(1200);
      const changes = await page.evaluate(
        () =>
          new Promise((resolve) => {
            let amount = 0;
            new MutationObserver((records) => (amount += records.length)).observe(document.body, {
              subtree: true,
              childList: true,
              characterData: true,
              attributes: true,
            });
            setTimeout(() => resolve(amount), 2500);
          }),
      );
      assert.equal(changes, 0);
    }));

  test("an update of 100 servers takes no long task", () =>
    open("many", {}, async ({ page, backend }) => {
      await row(page, "server-100").waitFor();
      await page.evaluate(() => {
        globalThis.longTasks = [];
        new PerformanceObserver((list) =>
          globalThis.longTasks.push(...list.getEntries().map((entry) => entry.duration)),
        ).observe({ type: "longtask" });
      });
      for (let index = 1; index <= 100; index += 1)
        backend.changeServer(`server-${String(index).padStart(3, "0")}`, { calls: 1000 + index });
      await row(page, "server-100").getByText("1,100").waitFor();
      await page.getByRole("searchbox", { name: "Filter servers" }).pressSequentially("server-04");
      await row(page, "server-100").waitFor({ state: "hidden" });
      const longest = Math.max(0, ...(await page.evaluate(() => globalThis.longTasks)));
      assert.ok(longest < 300, `a task took ${longest} ms`);
    }));
});

describe("an action", () => {
  test("says that it runs, then the server is awake and the focus stays", () =>
    open("states", {}, async ({ page }) => {
      await row(page, "slow").getByRole("button", { name: "Wake slow" }).press("Enter");
      const running = row(page, "slow").getByRole("button", { name: "Waking… slow" });
      await running.waitFor();
      assert.equal(await running.isDisabled(), true);
      await row(page, "slow").getByRole("status").getByText("Waking…").waitFor();
      await row(page, "slow").getByText("Awake", { exact: true }).waitFor();
      await row(page, "slow").getByRole("status").getByText("Awake.").waitFor();
      assert.equal(await focusedName(page), "Sleep slow");
      await page.keyboard.press("Enter");
      await row(page, "slow").getByText("Asleep", { exact: true }).waitFor();
    }));

  test("that fails shows its reason next to the button", () =>
    open("states", { allowed: /502/ }, async ({ page }) => {
      await row(page, "broken").getByRole("button", { name: "Wake broken" }).click();
      await row(page, "broken")
        .getByRole("status")
        .getByText("Wake failed: cannot start the process `npx -y no-such-package`: exit code 1")
        .waitFor();
      await row(page, "broken").getByText("2 failed loads").waitFor();
    }));

  test("is not repeated by a double click", () =>
    open("states", {}, async ({ page, backend }) => {
      await row(page, "browser").getByRole("button", { name: "Wake browser" }).dblclick();
      await row(page, "browser").getByText("Awake", { exact: true }).waitFor();
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
          /^at https:\/\/auth\.notion\.example; scopes read, write;.* renewed by itself$/,
        )
        .waitFor();
      await dialog.getByRole("button", { name: "Log in again notion" }).waitFor();
      assert.equal(await dialog.getByRole("button", { name: /share/i }).count(), 0);
    }));

  test("slow actions leave connections to the polls", () =>
    open("many", {}, async ({ page, backend }) => {
      const names = [
        "server-003",
        "server-007",
        "server-011",
        "server-015",
        "server-019",
        "server-023",
        "server-027",
      ];
      for (const name of names) backend.changeServer(name, { loadTakes: 4000 });
      for (const name of names)
        await row(page, name)
          .getByRole("button", { name: `Wake ${name}` })
          .click();
      backend.changeServer("server-001", { lastError: "seen while others load" });
      await row(page, "server-001")
        .getByText("Last error: seen while others load")
        .waitFor({ timeout: 3000 });
    }));
});

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
        name: "Difference of create_issue",
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
      await dialog.getByRole("group", { name: "Difference of create_issue" }).waitFor();
      backend.changeDefinition("github", "create_issue");
      await dialog.getByRole("button", { name: "Approve create_issue" }).click();
      await dialog
        .getByText("Approve failed: the definition has changed again; read it again")
        .waitFor();
      await dialog
        .getByRole("group", { name: "Difference of create_issue" })
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
      const before = backend.requests("stderr").length;
      await eventually(() => backend.requests("stderr").length > before + 1, true);
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
    }));
});

describe("the calls", () => {
  const rows = (page) => page.getByRole("table", { name: "Calls, newest first" }).getByRole("row");

  test("appear live, newest first", () =>
    open("states", { fragment: "#calls" }, async ({ page, backend }) => {
      await eventually(() => rows(page).count(), 31);
      backend.addCalls({ server: "browser", name: "navigate", outcome: "refused" });
      await rows(page).nth(1).getByRole("button", { name: "navigate" }).waitFor();
      await rows(page).nth(1).getByText("Refused").waitFor();
    }));

  test("pause and resume", () =>
    open("states", { fragment: "#calls" }, async ({ page, backend }) => {
      await eventually(() => rows(page).count(), 31);
      await page.getByRole("button", { name: "Pause" }).press("Enter");
      backend.addCalls({ name: "later" });
      await page.getByText("30 calls. Paused, 1 newer").waitFor();
      assert.equal(await page.getByRole("button", { name: "later" }).count(), 0);
      assert.equal(await focusedName(page), "Resume");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "later" }).waitFor();
    }));

  test("are filtered by server, tool and host, and by failure", () =>
    open("states", { fragment: "#calls" }, async ({ page }) => {
      await eventually(() => rows(page).count(), 31);
      const filter = page.getByRole("searchbox", { name: "Filter calls" });
      for (const [text, expected] of [
        ["browser_tool", 10],
        ["github", 20],
        ["opencode", 15],
        ["github claude", 10],
      ]) {
        await filter.fill(text);
        assert.equal(await rows(page).count(), expected + 1, text);
      }
      await filter.fill("");
      await page.getByRole("checkbox", { name: "Failed only" }).check();
      assert.equal(await rows(page).count(), 5);
    }));

  test("at most 200 rows of 1,000 calls are drawn", () =>
    open("many", { fragment: "#calls" }, async ({ page }) => {
      await page.getByText("The newest 200 of 1,000 calls").waitFor();
      assert.equal(await rows(page).count(), 201);
    }));

  test("a call's detail has all fields in words, and indented JSON that keeps long numbers", () =>
    open("states", { fragment: "#calls" }, async ({ page }) => {
      await rows(page).nth(6).getByText("Failed").waitFor();
      await rows(page).nth(6).getByText("Failed").click();
      const dialog = details(page, "browser_tool_1");
      const text = await dialog.textContent();
      for (const part of [
        "OutcomeFailed",
        "Errortool_error",
        "Serverbrowser",
        "Methodtools/call",
        "Toolbrowser_tool_1",
        "of the dormouse process 812)",
        "ms in the server",
        "Sent120 bytes, about 30 tokens",
        "Received5.1 kB, about 1,280 tokens",
      ]) {
        assert.ok(text.includes(part), `${part} in ${text}`);
      }
      assert.equal(
        await dialog.getByRole("group", { name: "Arguments" }).textContent(),
        '{\n  "owner": "acme",\n  "id": 12345678901234567890,\n  "labels": [],\n' +
          '  "nested": {\n    "a": [\n      1,\n      2\n    ]\n  }\n}',
      );
      assert.match(
        await dialog.getByRole("group", { name: "Result" }).textContent(),
        /"text": "done: \\"ok\\""/,
      );
    }));

  test("a call without optional fields has a detail too", () =>
    open("states", { fragment: "#calls" }, async ({ page, backend }) => {
      backend.addCalls({
        method: "tools/list",
        name: undefined,
        client: undefined,
        serverMs: undefined,
        arguments: undefined,
        result: undefined,
      });
      await page.getByRole("button", { name: "tools/list" }).press("Enter");
      await details(page, "tools/list")
        .getByText(/^unnamed \(host/)
        .waitFor();
    }));

  test("say how to turn on a call log that is off", () =>
    open("callLogOff", { fragment: "#calls" }, async ({ page, backend }) => {
      await page
        .getByText(/The call log is off\. To record calls, set "callLog": "calls" in the\s+config/)
        .waitFor();
      assert.deepEqual(backend.requests("calls"), []);
    }));
});

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
      await page
        .getByText("The search failed: no dormouse is running; start one of your hosts")
        .waitFor();
    }));
});

describe("the savings", () => {
  test("are shown in all, by server and with the estimator", () =>
    open("states", { fragment: "#savings" }, async ({ page }) => {
      const section = page.getByRole("region", { name: "Savings", exact: true });
      await section.getByText(/^About .* tokens saved in 450 turns\.$/).waitFor();
      await section.getByText("The numbers are estimates (4 bytes per token).").waitFor();
      const servers = section.getByRole("table", { name: "Tokens saved by server" });
      assert.match(await servers.getByRole("row").nth(1).textContent(), /^github[\d,]+$/);
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

describe("a page without its program", () => {
  test("says so, and recovers by itself", () =>
    open(
      "states",
      { allowed: /ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE/ },
      async ({ page, backend }) => {
        await row(page, "github").waitFor();
        await backend.goDown();
        await banner(page)
          .getByText(
            /^dormouse ui has ended\..* again\. What you see is from \d\d:\d\d:\d\d\.$/,
          )
          .waitFor();
        await backend.comeBack();
        await eventually(() => banner(page).textContent(), "");
      },
    ));

  test("says that its session has ended, polls less often, and recovers", () =>
    open("states", { allowed: /401/ }, async ({ page, backend }) => {
      await row(page, "github").waitFor();
      backend.endSession();
      await banner(page)
        .getByText("The session of this page has ended. Run “dormouse ui” again.")
        .waitFor();
      const before = backend.requests("overview").length;
      await page.waitForTimeout(4000);
      assert.ok(backend.requests("overview").length - before <= 2);
      backend.resumeSession();
      await eventually(() => banner(page).textContent(), "");
    }));

  test("shows its banner in an open dialog, too", () =>
    open("states", { fragment: "#servers/github", allowed: /401/ }, async ({ page, backend }) => {
      await details(page, "github").getByText("dormouse is connected to it.").waitFor();
      backend.endSession();
      await details(page, "github")
        .getByRole("alert")
        .getByText("The session of this page has ended.")
        .waitFor();
      await page.keyboard.press("Escape");
      await banner(page).getByText("The session of this page has ended.").waitFor();
    }));

  test("keeps its rate if only the calls or the savings fail", () =>
    open("states", { fragment: "#calls", allowed: /500/ }, async ({ page, backend }) => {
      backend.failRequests("calls", "the call log cannot be read");
      await banner(page)
        .getByText("The page cannot be updated: the call log cannot be read.")
        .waitFor();
      const before = backend.requests("overview").length;
      await eventually(() => backend.requests("overview").length >= before + 4, true);
      backend.failRequests("calls", null);
      await eventually(() => banner(page).textContent(), "");
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
      await row(page, "github").getByText("Sleep failed: dormouse ui has ended").waitFor();
    }));

  test("does not poll while it is hidden, and polls at once when it is visible", () =>
    open("states", {}, async ({ page, backend }) => {
      await row(page, "github").waitFor();
      const setVisibility = (state) =>
        page.evaluate((value) => {
          Object.defineProperty(document, "hidden", {
            configurable: true,
            get: () => value === "hidden",
          });
          document.dispatchEvent(new Event("visibilitychange"));
        }, state);
      await setVisibility("hidden");
      await page.waitForTimeout(300);
      const before = backend.requests("overview").length;
      await page.waitForTimeout(2200);
      assert.equal(backend.requests("overview").length, before);
      await setVisibility("visible");
      await eventually(() => backend.requests("overview").length > before, true);
    }));
});

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

for (const scheme of ["light", "dark"]) {
  for (const width of [1440, 375]) {
    describe(`in the ${scheme} scheme at ${width} pixels`, () => {
      const options = { scheme, width, height: 800 };
      const check = async (page, state) => {
        await assertAccessible(page, state);
        await assertFitsWidth(page, state);
        await assertTargetSizes(page, state);
      };

      test("axe-core finds nothing in any view, and nothing is too wide", () =>
        open("states", options, async ({ page }) => {
          await row(page, "github").waitFor();
          await check(page, "servers");
          await view(page, "Calls").click();
          await page.getByRole("button", { name: "list_issues" }).first().waitFor();
          await check(page, "calls");
          await view(page, "Search").click();
          await queryBox(page).fill("issue");
          await page.getByRole("listitem").first().waitFor();
          await check(page, "search");
          await view(page, "Savings").click();
          await page.getByRole("img", { name: /Tokens saved by hour/ }).waitFor();
          await page.getByText("Show as a table").click();
          await check(page, "savings");
        }));

      test("axe-core finds nothing in the details of a server and of a call", () =>
        open("states", { ...options, fragment: "#servers/github" }, async ({ page }) => {
          await details(page, "github").getByRole("listitem").first().waitFor();
          await check(page, "details");
          await details(page, "github")
            .getByRole("list", { name: "Last calls" })
            .getByRole("button")
            .first()
            .click();
          await details(page, "list_issues").waitFor();
          await check(page, "call");
        }));

      test("axe-core finds nothing when things fail or no dormouse runs", () =>
        open("none", { ...options, allowed: /401/ }, async ({ page, backend }) => {
          await row(page, "github").waitFor();
          backend.endSession();
          await banner(page).getByText("has ended").waitFor();
          await check(page, "session ended");
        }));

      test("hostile texts fit the width", () =>
        open("hostile", options, async ({ page }) => {
          await page.getByRole("link", { name: "x".repeat(200) }).waitFor();
          await check(page, "servers");
          await openDetails(page, "<img src=x onerror=\"document.title='hacked'\">");
          await page.getByRole("dialog").getByRole("listitem").first().waitFor();
          await check(page, "details");
        }));
    });
  }
}

/**
 * Asserts that each control is at least 24 pixels high and wide; links inside a sentence are
 * exempt.
 */
async function assertTargetSizes(page, state) {
  const small = await page.evaluate(() =>
    [
      ...document.querySelectorAll(
        "button, nav a, th a, summary, label:has(input), input[type=search]",
      ),
    ]
      .filter(
        (node) =>
          node.checkVisibility() &&
          !(document.querySelector("dialog[open]") && !node.closest("dialog")),
      )
      .map((node) => ({ name: node.outerHTML.slice(0, 80), box: node.getBoundingClientRect() }))
      .filter(({ box }) => box.width < 24 || box.height < 24)
      .map(({ name, box }) => `${name} ${box.width} × ${box.height}`),
  );
  assert.deepEqual(small, [], state);
}

test("reduced motion is respected", () =>
  open("states", {}, async ({ page }) => {
    const animation = () =>
      row(page, "postgres")
        .getByText("Loading")
        .evaluate((node) => getComputedStyle(node, "::before").animationName);
    await row(page, "postgres").waitFor();
    assert.equal(await animation(), "turn");
    await page.emulateMedia({ reducedMotion: "reduce" });
    assert.equal(await animation(), "none");
  }));

test("each focused control has a visible outline", () =>
  open("states", {}, async ({ page }) => {
    await row(page, "github").waitFor();
    for (let index = 0; index < 14; index += 1) {
      await page.keyboard.press("Tab");
      const outline = await page.evaluate(
        () => getComputedStyle(document.activeElement).outlineStyle,
      );
      assert.equal(outline, "solid", await focusedName(page));
    }
  }));

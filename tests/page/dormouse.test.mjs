// The page in front of the real program. The other files test the page itself, in more states.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assertAccessible, assertFitsWidth, openPage } from "./browser.mjs";
import { Dormouse, fixture } from "./dormouse.mjs";
import { details, eventually, row, useBrowser, view } from "./support.mjs";

const use = useBrowser();

const state = (page, name, word) => row(page, name).getByText(word, { exact: true }).waitFor();

/**
 * Opens a view of the page of a user with these servers, runs `check({page, dormouse})`, and ends
 * everything.
 */
async function withDormouse(servers, options, check) {
  const dormouse = await Dormouse.start(servers, options);
  try {
    await openPage(use.browser, dormouse.url, options, async (page) => {
      if (options.view) await view(page, options.view).click();
      await check({ page, dormouse });
    });
  } finally {
    await dormouse.close();
  }
}

describe("the address of the page", () => {
  test("opens it in one browser alone", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      await row(page, "a").waitFor();
      assert.match(page.url(), /\/[\w-]{32}\/$/);
      const other = await use.browser.newContext();
      const stranger = await other.newPage();
      assert.equal((await stranger.goto(dormouse.url)).status(), 401);
      await stranger.getByText("This address has been used").waitFor();
      assert.equal((await stranger.goto(page.url())).status(), 401);
      await other.close();
      await page.reload();
      await row(page, "a").waitFor();
    }));

  test("names the hosts that are connected", () =>
    withDormouse({ a: fixture() }, {}, async ({ page }) => {
      await page.getByRole("banner").getByText("(browser-test 1)").waitFor();
    }));
});

describe("a server", () => {
  test("is woken, used and put to sleep", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      await state(page, "a", "Unloaded");
      await row(page, "a").getByRole("button", { name: "Wake a" }).click();
      await state(page, "a", "Awake");
      const answer = await dormouse.call("a/echo", { text: "hello" });
      assert.match(answer.content[0].text, /hello/);
      await row(page, "a").getByRole("button", { name: "Sleep a" }).click();
      await state(page, "a", "Asleep");
    }));

  test("that cannot start shows its reason, and is reset", () =>
    withDormouse(
      { gone: fixture({}, { command: "/no/such/program" }) },
      { allowed: /status of 409/ },
      async ({ page }) => {
        await row(page, "gone").getByRole("button", { name: "Wake gone" }).click();
        await row(page, "gone")
          .getByText(/no\/such\/program/)
          .first()
          .waitFor();
        await row(page, "gone").getByRole("button", { name: "Reset gone" }).click();
        await state(page, "gone", "Unloaded");
      },
    ));

  test("that dies while one looks is shown as asleep, and keeps its lines of standard error", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      await dormouse.call("a/shout", { lines: 2 });
      await state(page, "a", "Awake");
      await page.getByRole("link", { name: "a", exact: true }).click();
      const stderr = details(page, "a").getByRole("group", { name: "Standard error" });
      await stderr.getByText(/1: xxx/).waitFor();
      await dormouse.call("a/die");
      await details(page, "a").getByText("Asleep", { exact: true }).first().waitFor();
      await stderr.getByText(/1: xxx/).waitFor();
    }));

  test("is switched off and on in the config", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      const toggle = row(page, "a").getByRole("switch", { name: "Enable a" });
      await toggle.click();
      await state(page, "a", "Off");
      assert.equal((await dormouse.config()).mcpServers.a.enabled, false);
      await toggle.click();
      await state(page, "a", "Unloaded");
      assert.equal((await dormouse.config()).mcpServers.a.enabled, true);
    }));

  test("is shared by the hosts, and not", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      const isolation = async () => (await dormouse.config()).mcpServers.a.isolation;
      await page.getByRole("link", { name: "a", exact: true }).click();
      await details(page, "a").getByRole("button", { name: "Share a", exact: true }).click();
      await eventually(isolation, "shared");
      await details(page, "a").getByRole("button", { name: "Do not share a" }).click();
      await eventually(isolation, "session");
    }));
});

describe("a tool", () => {
  test("is switched off, and its agent cannot call it", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      await dormouse.call("a/echo");
      await page.getByRole("link", { name: "a", exact: true }).click();
      await details(page, "a").getByRole("switch", { name: "Show echo to agents" }).click();
      await eventually(async () => (await dormouse.call("a/echo")).isError ?? false, true);
      assert.equal((await dormouse.config()).mcpServers.a.tools.echo, false);
    }));

  test("that has changed is approved after a look at its lines", async () => {
    const wording = (FIXTURE_WORDING) => ({
      a: fixture({}, { pin: "block", env: { FIXTURE_WORDING } }),
    });
    await withDormouse(wording(" First."), {}, async ({ page, dormouse }) => {
      await dormouse.call("a/echo");
      await dormouse.stopHost();
      await dormouse.setServers(wording(" Other."));
      await dormouse.startHost();
      assert.equal((await dormouse.call("a/echo")).isError, true, "it is blocked");
      await page.getByRole("link", { name: "a", exact: true }).click();
      const difference = details(page, "a").getByRole("group", { name: "Changes to echo" });
      await difference.getByRole("deletion").filter({ hasText: "First." }).waitFor();
      await difference.getByRole("insertion").filter({ hasText: "Other." }).waitFor();
      await details(page, "a").getByRole("button", { name: "Approve echo" }).click();
      await eventually(async () => (await dormouse.call("a/echo")).isError ?? false, false);
      assert.equal((await dormouse.call("a/slow")).isError, true, "the others stay blocked");
    });
  });
});

describe("the other views", () => {
  test("show calls as they end, with all that is kept of them", () =>
    withDormouse(
      { a: fixture() },
      { view: "Calls", settings: { callLog: "contents" } },
      async ({ page, dormouse }) => {
        await page.getByRole("region", { name: "Calls" }).waitFor();
        await dormouse.call("a/echo", { text: "from the host" });
        await page
          .getByRole("table", { name: "Calls, newest first" })
          .getByRole("button", { name: /echo/ })
          .click();
        const detail = page.getByRole("dialog");
        await detail
          .getByText(/from the host/)
          .first()
          .waitFor();
        await detail.getByText("browser-test 1").waitFor();
      },
    ));

  test("find what an agent would find", () =>
    withDormouse({ a: fixture() }, { view: "Search" }, async ({ page, dormouse }) => {
      await dormouse.call("a/echo");
      await page.getByRole("searchbox", { name: "What would an agent find?" }).fill("echo");
      await page.keyboard.press("Enter");
      await page
        .getByRole("region", { name: "Search" })
        .getByText("The echo tool. Its second sentence.")
        .waitFor();
    }));

  test("show the savings by server and by the hour", () =>
    withDormouse({ a: fixture() }, { view: "Savings" }, async ({ page, dormouse }) => {
      for (let turn = 0; turn < 3; turn += 1) await dormouse.call("a/echo");
      const region = page.getByRole("region", { name: "Savings" });
      await region.getByText("4 bytes per token").waitFor();
      await region
        .getByText(/\b[1-9][\d,]* tokens?\b/)
        .first()
        // The page reads the savings every 10 seconds.
        .waitFor({ timeout: 15_000 });
      await region
        .getByRole("table", { name: "Tokens saved by server" })
        .getByRole("row", { name: /^a / })
        .waitFor();
      await region.getByRole("img", { name: /^Tokens saved by hour/ }).waitFor();
    }));
});

describe("a large config", () => {
  const definitions = Array.from({ length: 32 }, (_, number) => ({
    name: `tool_${number}`,
    description: `Does thing ${number}. `.repeat(8),
    inputSchema: { type: "object" },
  }));
  const names = Array.from({ length: 100 }, (_, number) => `server-${number}`);
  // With the 18 tools that each fixture has: 5,000.
  const servers = Object.fromEntries(names.map((name) => [name, fixture({ definitions })]));

  for (const width of [375, 1440]) {
    test(`of 100 servers with 5,000 tools can be used at ${width} pixels`, () =>
      withDormouse(
        servers,
        { width, scheme: width === 375 ? "dark" : "light" },
        async ({ page, dormouse }) => {
          dormouse.run("refresh");
          await page.reload();
          await row(page, "server-99").waitFor();
          assert.equal(await page.getByRole("rowheader").count(), 100);
          const tools = row(page, "server-99")
            .getByRole("cell")
            .filter({ hasText: /^(Tools)?50/ });
          await eventually(() => tools.count(), 1);
          await assertFitsWidth(page, "100 servers");
          await page.getByRole("searchbox", { name: "Filter servers" }).fill("server-77");
          await page.getByRole("link", { name: "server-77" }).click();
          await details(page, "server-77").getByText("tool_31", { exact: true }).waitFor();
          await assertAccessible(page, "details");
        },
      ));
  }
});

describe("an end", () => {
  test("of the host is shown, with what is stored", () =>
    withDormouse({ a: fixture() }, {}, async ({ page, dormouse }) => {
      await dormouse.call("a/echo");
      await dormouse.stopHost();
      await page.getByText("No dormouse is running.").waitFor();
      await row(page, "a").getByText("Not running").waitFor();
      await row(page, "a").getByText("18").first().waitFor();
    }));

  test("of the command is said, and nothing is lost", () =>
    withDormouse(
      { a: fixture() },
      { allowed: /ERR_CONNECTION_REFUSED/ },
      async ({ page, dormouse }) => {
        await row(page, "a").waitFor();
        await dormouse.stopPage();
        await page
          .getByRole("alert")
          .getByText(/dormouse ui has ended/)
          .waitFor();
        await row(page, "a").waitFor();
      },
    ));
});

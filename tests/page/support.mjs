// Helpers of the tests. They find elements by role and accessible name, as a user does.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { launch } from "./browser.mjs";
import { withPage } from "./mock_page.mjs";

/** Starts one browser for the tests of a file, as `browser` of the returned object. */
export function useBrowser() {
  const use = { browser: null };
  before(async () => {
    use.browser = await launch();
  });
  after(() => use.browser.close());
  return use;
}

/** Returns a function that opens the page in front of a mock, in one browser for each file. */
export function useMockedPage() {
  const use = useBrowser();
  return (scenario, options, check) => withPage(use.browser, scenario, options, check);
}

export const view = (page, name) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name });

export const row = (page, name) =>
  page
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader").getByRole("link", { name, exact: true }) });

export const details = (page, name) => page.getByRole("dialog", { name, exact: true });

export const banner = (page) => page.getByRole("main").getByRole("alert");

export const queryBox = (page) =>
  page.getByRole("searchbox", { name: "What would an agent find?" });

export const tools = (page, server) =>
  details(page, server).getByRole("list", { name: "Tools" }).getByRole("listitem");

export const callRows = (page) =>
  page.getByRole("table", { name: "Calls, newest first" }).getByRole("row");

export async function openDetails(page, name) {
  await page.getByRole("link", { name, exact: true }).click();
  await details(page, name).waitFor();
  return details(page, name);
}

/** Waits until `read()` returns `expected`; the page changes with its polls. */
export async function eventually(read, expected) {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const value = await read();
    try {
      return assert.deepEqual(value, expected);
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until the page has sent `amount` more requests whose text contains `part`. */
export async function nextRequests(backend, part, amount) {
  const before = backend.requests(part).length;
  await eventually(() => backend.requests(part).length >= before + amount, true);
}

/** Waits for an answer from the server, so that all requests before it have arrived there. */
export const roundTrip = (page) =>
  page.evaluate(async () => void (await (await fetch("icon.svg", { cache: "no-store" })).text()));

export const focusedName = (page) =>
  page.evaluate(() => {
    const focused = document.activeElement;
    const name = focused.getAttribute("aria-label") ?? focused.labels?.[0]?.textContent;
    return (name ?? focused.textContent).trim();
  });

const MAX_TABS = 120;

/** Presses Tab until the control with this name has the focus. */
export async function tabTo(page, name) {
  const passed = [];
  while (passed.length < MAX_TABS) {
    await page.keyboard.press("Tab");
    const focused = await focusedName(page);
    if (focused === name) return;
    passed.push(focused);
  }
  assert.fail(`Tab does not reach “${name}”, but ${passed.join(", ")}`);
}

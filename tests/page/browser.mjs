// Starts one browser for all tests, and opens pages that must stay free of console errors and
// warnings.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });

/**
 * Opens an address, runs `check(page, context)` and closes the page.
 * Options: `fragment`, `width`, `height`, `scheme`, `hasClock` (`page.clock` sets the time), and
 * `allowed` (a pattern of console messages that the test causes).
 */
export async function openPage(browser, url, options, check) {
  const { fragment = "", width = 1440, height = 900, scheme = "light" } = options;
  const { hasClock = false, allowed = null } = options;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  const page = await context.newPage();
  page.setDefaultTimeout(8000);
  const problems = [];
  page.on(
    "console",
    (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()),
  );
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("dialog", (dialog) => problems.push(`dialog: ${dialog.message()}`));
  try {
    if (hasClock) await page.clock.install();
    await page.goto(`${url}${fragment}`);
    await check(page, context);
    assert.deepEqual(
      problems.filter((text) => !allowed?.test(text)),
      [],
      "the console stays empty",
    );
  } finally {
    await context.close();
  }
}

/** Asserts that axe-core finds nothing at all, minor findings included. */
export async function assertAccessible(page, state) {
  // The CSP of the page forbids injected script elements; the evaluation by the debugger is not
  // subject to it.
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(
      ({ id, impact, nodes }) =>
        `${impact} ${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.html.slice(0, 120)} ${node.failureSummary.slice(0, 200)}`)
          .join(" | ")}`,
    );
  });
  assert.deepEqual(violations, [], state);
}

/** Asserts that the page does not scroll sideways. */
export async function assertFitsWidth(page, state) {
  const excess = await page.evaluate(() => {
    const boxes = [
      document.documentElement,
      ...document.querySelectorAll("dialog[open], dialog[open] .dialog-body"),
    ];
    return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
  });
  assert.ok(excess <= 0, `${state}: the content is ${excess} px too wide`);
}

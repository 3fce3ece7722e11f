// Accessibility, width and size of targets, in both colour schemes and at two widths.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assertAccessible, assertFitsWidth } from "./browser.mjs";
import {
  banner,
  callRows,
  details,
  focusedName,
  openDetails,
  queryBox,
  row,
  useMockedPage,
  view,
} from "./support.mjs";

const open = useMockedPage();

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

test("at phone width the order of the elements is the order of the picture", () =>
  open("states", { width: 375 }, async ({ page }) => {
    const positions = (cells) =>
      cells.evaluateAll((nodes) =>
        nodes
          .map((node) => node.getBoundingClientRect())
          .filter(({ width }) => width > 0)
          .map(({ x, y, height }) => ({ x, top: y, bottom: y + height })),
      );
    const assertInOrder = async (item) => {
      const boxes = await positions(item.locator("> *"));
      assert.ok(boxes.length > 3);
      for (const [index, box] of boxes.slice(1).entries())
        assert.ok(
          box.top >= boxes[index].bottom - 1 || box.x > boxes[index].x,
          JSON.stringify(boxes),
        );
    };
    await row(page, "github").waitFor();
    await assertInOrder(row(page, "github"));
    await view(page, "Calls").click();
    await callRows(page).nth(1).waitFor();
    await assertInOrder(callRows(page).nth(1));
    assert.equal(await callRows(page).nth(1).getByRole("cell").count(), 7);
  }));

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

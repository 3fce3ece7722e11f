// The view of calls.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  callRows,
  details,
  eventually,
  focusedName,
  nextRequests,
  tabTo,
  useMockedPage,
} from "./support.mjs";

const open = useMockedPage();

describe("the calls", () => {
  test("appear live, newest first", () =>
    open("states", { fragment: "#calls" }, async ({ page, backend }) => {
      await eventually(() => callRows(page).count(), 31);
      backend.addCalls({ server: "browser", name: "navigate", outcome: "refused" });
      await callRows(page).nth(1).getByRole("button", { name: "navigate" }).waitFor();
      await callRows(page).nth(1).getByText("Refused").waitFor();
    }));

  test("pause and resume", () =>
    open("states", { fragment: "#calls" }, async ({ page, backend }) => {
      await eventually(() => callRows(page).count(), 31);
      await page.getByRole("button", { name: "Pause" }).press("Enter");
      backend.addCalls({ name: "later" });
      await page.getByText("30 calls. Paused, 1 newer").waitFor();
      assert.equal(await page.getByRole("button", { name: "later" }).count(), 0);
      assert.equal(await focusedName(page), "Resume");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "later" }).waitFor();
    }));

  test("are filtered by server, tool and host", () =>
    open("states", { fragment: "#calls" }, async ({ page }) => {
      await eventually(() => callRows(page).count(), 31);
      const filter = page.getByRole("searchbox", { name: "Filter calls" });
      for (const [text, expected] of [
        ["browser_tool", 10],
        ["github", 20],
        ["opencode", 15],
        ["github claude", 10],
      ]) {
        await filter.fill(text);
        assert.equal(await callRows(page).count(), expected + 1, text);
      }
    }));

  test("that did not succeed are shown alone", () =>
    open("states", { fragment: "#calls" }, async ({ page, backend }) => {
      await eventually(() => callRows(page).count(), 31);
      backend.addCalls(
        { name: "refused_call", outcome: "refused" },
        { name: "unanswered_call", outcome: "unanswered" },
        { name: "succeeded_call", outcome: "succeeded" },
      );
      await page.getByRole("button", { name: "succeeded_call" }).waitFor();
      await page.getByRole("checkbox", { name: "Only calls that did not succeed" }).check();
      const outcomes = await callRows(page)
        .getByText(/^(Succeeded|Failed|Refused|Unanswered)$/)
        .allTextContents();
      assert.deepEqual(outcomes, ["Unanswered", "Refused", "Failed", "Failed", "Failed", "Failed"]);
    }));

  test("are used by keyboard: filter, choose and open", () =>
    open("states", { fragment: "#calls" }, async ({ page }) => {
      await eventually(() => callRows(page).count(), 31);
      await tabTo(page, "Filter calls");
      await page.keyboard.type("browser");
      await tabTo(page, "Only calls that did not succeed");
      await page.keyboard.press("Space");
      await page.getByText("2 calls", { exact: true }).waitFor();
      await tabTo(page, "browser_tool_1");
      await page.keyboard.press("Enter");
      await details(page, "browser_tool_1").waitFor();
      await tabTo(page, "Close");
      await page.keyboard.press("Enter");
      await details(page, "browser_tool_1").waitFor({ state: "hidden" });
      assert.equal(await focusedName(page), "browser_tool_1");
    }));

  test("at most 200 rows of 500 calls are drawn", () =>
    open("many", { fragment: "#calls" }, async ({ page }) => {
      await page.getByText("The newest 200 of 500 calls").waitFor();
      assert.equal(await callRows(page).count(), 201);
    }));

  test("a call's detail has all fields in words, and indented JSON that keeps long numbers", () =>
    open("states", { fragment: "#calls" }, async ({ page }) => {
      await callRows(page).nth(6).getByText("Failed").waitFor();
      await callRows(page).nth(6).getByText("Failed").click();
      const dialog = details(page, "browser_tool_1");
      const text = await dialog.textContent();
      for (const part of [
        "OutcomeFailed",
        "Errortool_error",
        "Serverbrowser",
        "Methodtools/call",
        "Toolbrowser_tool_1",
        "of dormouse process 812)",
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
      await nextRequests(backend, "overview", 2);
      assert.deepEqual(backend.requests("calls"), []);
    }));
});

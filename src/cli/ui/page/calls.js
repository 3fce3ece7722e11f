// The view of live calls.

import { createOutcome, describeTook, openCall, titleOf } from "./call_details.js";
import { byId, element, reconcile, setHidden, setText, showText } from "./dom.js";
import { matches } from "./filter.js";
import { clock, count, number, revealed } from "./format.js";

const MAX_ROWS = 200;

export class CallsView {
  #log;
  #isRecorded = true;
  // The calls and their total at the moment of the pause; null while the view is live.
  #paused = null;
  #filter = byId("calls-filter");
  #unsuccessfulOnly = byId("calls-unsuccessful");

  constructor(log) {
    this.#log = log;
    this.#filter.addEventListener("input", () => this.draw());
    this.#unsuccessfulOnly.addEventListener("change", () => this.draw());
    byId("calls-pause").addEventListener("click", () => this.#togglePause());
  }

  draw(isRecorded = this.#isRecorded) {
    this.#isRecorded = isRecorded;
    const calls = (this.#paused ?? this.#log).calls;
    const matching = calls.filter((call) => this.#matches(call));
    const shown = matching.slice(0, MAX_ROWS);
    reconcile(byId("calls-rows"), shown, (call) => call.id, createRow);
    setHidden(byId("calls-table"), shown.length === 0);
    setHidden(byId("calls-off"), isRecorded);
    const { error, isKnown } = this.#log;
    showText(byId("calls-error"), error && `The calls cannot be read: ${revealed(error.message)}.`);
    const why = calls.length ? "No call matches the filter." : "No call is recorded yet.";
    showText(byId("calls-empty"), shown.length || !isKnown || !isRecorded ? "" : why);
    setText(byId("calls-count"), this.#describeAmount(shown.length, matching.length));
  }

  #matches(call) {
    if (this.#unsuccessfulOnly.checked && call.outcome === "succeeded") return false;
    return matches(call.text, this.#filter.value);
  }

  #describeAmount(shown, matching) {
    const amount =
      shown === matching
        ? count(shown, "call")
        : `The newest ${shown} of ${count(matching, "call")}`;
    if (!this.#paused) return amount;
    return `${amount}. Paused, ${number(this.#log.total - this.#paused.total)} newer`;
  }

  #togglePause() {
    const { calls, total } = this.#log;
    this.#paused = this.#paused ? null : { calls, total };
    setText(byId("calls-pause"), this.#paused ? "Resume" : "Pause");
    this.draw();
  }
}

function createRow(call) {
  const open = element("button", { type: "button", class: "link name" }, titleOf(call));
  const needsMethod = call.name && call.method !== "tools/call";
  const method = needsMethod ? element("span", { class: "note" }, revealed(call.method)) : "";
  const cell = (label, text, type) =>
    element(
      "td",
      { role: "cell", "data-label": label, class: type, "data-empty": text ? null : "" },
      text || "–",
    );
  // A click that ends a text selection opens nothing.
  const click = ({ target }) => (target === open || getSelection().isCollapsed) && openCall(call);
  const node = element(
    "tr",
    { role: "row", click },
    element("th", { scope: "row", role: "rowheader" }, open, method),
    element(
      "td",
      { role: "cell", "data-label": "Time" },
      element("time", { datetime: call.at }, clock(new Date(call.at))),
    ),
    cell("Server", revealed(call.server), "code"),
    cell("Host", revealed(call.client)),
    element("td", { role: "cell", "data-label": "Outcome" }, createOutcome(call)),
    cell("Took", describeTook(call), "number"),
    cell("Tokens in", number(call.tokensIn), "number"),
    cell("Tokens out", number(call.tokensOut), "number"),
  );
  return { node, update() {} };
}

// One call: as an item of a list, and in a dialog with all fields.

import { byId, element, prepareDialog, setText, showFields } from "./dom.js";
import { bytes, clock, count, dateAndClock, duration, prettyJson, revealed } from "./format.js";

const MAX_CONTENT = 200_000;

const OUTCOMES = {
  succeeded: ["Succeeded", "good"],
  failed: ["Failed", "bad"],
  refused: ["Refused", "warn"],
  unanswered: ["Unanswered", "warn"],
};
const NAME_TERMS = { "prompts/get": "Prompt", "resources/read": "Resource", "tools/call": "Tool" };

const dialog = byId("call-dialog");
prepareDialog(dialog);

export const titleOf = (call) => revealed(call.name ?? call.method);

export const describeTook = (call) =>
  typeof call.tookMs === "number" ? duration(call.tookMs) : "";

/** Creates the badge of a call's outcome. */
export function createOutcome({ outcome }) {
  const [word, tone] = OUTCOMES[outcome] ?? [revealed(outcome), "idle"];
  return element("span", { class: "badge", "data-tone": tone }, word);
}

/** Creates an item for the list of a server's last calls. */
export function createCallItem(call) {
  const open = element(
    "button",
    { type: "button", class: "link name", click: () => openCall(call) },
    titleOf(call),
  );
  const time = element("time", { datetime: call.at, class: "muted" }, clock(new Date(call.at)));
  const took = element("span", { class: "muted" }, describeTook(call));
  return { node: element("li", {}, time, open, createOutcome(call), took), update() {} };
}

export function closeCall() {
  if (dialog.open) dialog.close();
}

export function openCall(call) {
  setText(byId("call-title"), titleOf(call));
  showFields(byId("call-fields"), describeCall(call));
  byId("call-contents").replaceChildren(
    ...["Arguments", "Result"].flatMap((title) => createContent(title, call)),
  );
  if (!dialog.open) dialog.showModal();
}

function describeCall(call) {
  return [
    ["Outcome", OUTCOMES[call.outcome]?.[0] ?? revealed(call.outcome)],
    ["Error", revealed(call.error)],
    ["Policy", revealed(call.policy)],
    ["Time", dateAndClock(new Date(call.at))],
    ["Server", revealed(call.server)],
    ["Method", revealed(call.method)],
    [NAME_TERMS[call.method] ?? "Name", revealed(call.name)],
    [
      "Host",
      `${revealed(call.client ?? "unnamed")} (host ${call.host} of dormouse process ${call.pid})`,
    ],
    ["Script", call.script && `${revealed(call.script.name)}, run ${call.script.run}`],
    ["Took", describeShares(call)],
    ["Sent", `${bytes(call.bytesIn)}, about ${count(call.tokensIn, "token")}`],
    ["Received", `${bytes(call.bytesOut)}, about ${count(call.tokensOut, "token")}`],
  ];
}

function describeShares(call) {
  if (typeof call.serverMs !== "number") return describeTook(call);
  return `${describeTook(call)}, of which ${duration(call.serverMs)} in the server`;
}

function createContent(title, call) {
  const text = call[title.toLowerCase()];
  if (typeof text !== "string") return [];
  const shown = revealed(prettyJson(text));
  const cut =
    shown.length > MAX_CONTENT
      ? `\n… (${count(shown.length - MAX_CONTENT, "more character")})`
      : "";
  const box = element("pre", {
    class: "scroll",
    tabindex: "0",
    role: "group",
    "aria-label": title,
  });
  setText(box, shown.slice(0, MAX_CONTENT) + cut);
  return [element("h3", {}, title), box];
}

// The states of a server in words.

import { count, duration, revealed } from "./format.js";
import { element, setAttribute, setText } from "./dom.js";

const STATES = {
  unloaded: ["Unloaded", "idle", "dormouse has not connected to it yet. The first use loads it."],
  loading: ["Loading", "busy", "dormouse is connecting to it."],
  awake: ["Awake", "good", "dormouse is connected to it."],
  asleep: ["Asleep", "idle", "dormouse is not connected to it. The next call wakes it."],
  "backing-off": ["Backing off", "warn", "dormouse cannot reach it, and tries again by itself."],
  "awaiting-login": ["Awaiting login", "warn", "The server requires a login."],
  evicted: [
    "Evicted",
    "bad",
    "Three loads in a row failed, so hosts do not see it. Reset it to offer it again.",
  ],
  disabled: ["Off", "off", "It is switched off in the config."],
};

/** Returns the word, the tone (a class of the style sheet) and the meaning of a server's state. */
export function describeState(server) {
  if (!server.enabled) return describe("disabled");
  if (server.state === null)
    return { word: "Not running", tone: "off", meaning: "No dormouse is running." };
  return describe(server.state);
}

function describe(state) {
  const [word, tone, meaning] = STATES[state] ?? [revealed(state), "idle", ""];
  return { word, tone, meaning };
}

export function needsAttention(server) {
  const hasSuspects = server.toolCounts?.changed > 0 || server.toolCounts?.blocked > 0;
  return (
    hasSuspects ||
    (server.enabled && ["evicted", "backing-off", "awaiting-login"].includes(server.state))
  );
}

/** Returns a short addition to the state: failed loads and the time until the next attempt. */
export function describeAttempts(server) {
  const notes = [];
  if (server.strikes > 0) notes.push(`${count(server.strikes, "failed load")}`);
  if (server.retryIn !== null && server.state === "backing-off")
    notes.push(`tries again in ${duration(server.retryIn)}`);
  return notes.join(", ");
}

/** Creates a label with a coloured mark and a word. */
export function createBadge() {
  const node = element("span", { class: "badge" });
  return {
    node,
    update(word, tone) {
      setText(node, word);
      setAttribute(node, "data-tone", tone);
    },
  };
}

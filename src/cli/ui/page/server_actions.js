// Actions on a server: when they make sense, their requests, and their progress.

import * as api from "./api.js";
import { revealed } from "./format.js";

const DONE_SHOWN_FOR = 5000;

const WAKE = { label: "Wake", running: "Waking…", done: "Awake.", request: api.load };
const SLEEP = { label: "Sleep", running: "Putting to sleep…", done: "Asleep.", request: api.sleep };
const RESET = {
  label: "Reset",
  running: "Resetting…",
  done: "Failed loads are cleared.",
  request: api.reset,
};
const LOG_IN = { label: "Log in", running: "Starting the login…", done: "", request: api.logIn };
const LOG_IN_AGAIN = { ...LOG_IN, label: "Log in again" };
const SHARE = {
  label: "Share",
  running: "Sharing…",
  done: "Hosts share one process.",
  request: (name) => api.isolate(name, "shared"),
};
const SEPARATE = {
  label: "Do not share",
  running: "Separating…",
  done: "Each session has its own process.",
  request: (name) => api.isolate(name, "session"),
};
export const SWITCH_ON = {
  label: "Switch on",
  running: "Switching on…",
  done: "On.",
  request: (name) => api.enable(name, true),
};
export const SWITCH_OFF = {
  label: "Switch off",
  running: "Switching off…",
  done: "Off.",
  request: (name) => api.enable(name, false),
};

/**
 * The buttons of a server. Each is a function that returns the action that the button offers now,
 * or `null` if the button is hidden. Wake and Sleep share a button, so that the focus stays where
 * it is when one replaces the other.
 */
export const BUTTONS = {
  wakeOrSleep(server) {
    if (!server.enabled) return null;
    if (server.state === "awake") return SLEEP;
    return ["unloaded", "asleep", "backing-off"].includes(server.state) ? WAKE : null;
  },
  reset: (server) =>
    server.state !== null && (server.strikes > 0 || server.state === "evicted") ? RESET : null,
  neededLogin: (server) =>
    server.canLogIn && server.enabled && !server.login?.usable ? LOG_IN : null,
  login: (server) => (server.canLogIn ? (server.login?.usable ? LOG_IN_AGAIN : LOG_IN) : null),
  share: (server) => (server.canShare && server.isolation !== "shared" ? SHARE : null),
  separate: (server) => (server.canShare && server.isolation !== "session" ? SEPARATE : null),
};

export const ROW_BUTTONS = ["wakeOrSleep", "reset", "neededLogin"];
export const ALL_BUTTONS = ["wakeOrSleep", "reset", "login", "share", "separate"];

/**
 * Runs actions, and remembers the progress of each. The switch of a server has its own slot,
 * because a user can switch off a server that takes long to wake.
 */
export class ServerActions {
  #progress = new Map();
  // The situation of each server in the last overview.
  #situations = new Map();
  #refresh;
  #changed;

  /** `refresh()` polls the overview; `changed()` draws the progress. */
  constructor(refresh, changed) {
    this.#refresh = refresh;
    this.#changed = changed;
  }

  /** Removes the message of a failure whose server has changed its state since. */
  update(servers) {
    const settled = servers.filter((server) => server.state !== "loading");
    for (const server of settled) this.#situations.set(server.name, describeSituation(server));
    for (const [key, { name, failed, situation }] of this.#progress)
      if (failed && situation !== this.#situations.get(name)) this.#progress.delete(key);
  }

  /** Returns `{running: action}`, `{done: text}`, `{failed: text}` or `{}`. */
  progressOf(name, slot) {
    return this.#progress.get(`${slot} ${name}`) ?? {};
  }

  async run(name, slot, action) {
    if (this.progressOf(name, slot).running) return;
    this.#set(name, slot, { running: action });
    const result = await attempt(action, name);
    // The overview comes first: the button must not show the old state as if it were new.
    await this.#refresh();
    this.#set(name, slot, { ...result, name, situation: this.#situations.get(name) });
    if (!result.done) return;
    const shown = this.progressOf(name, slot);
    setTimeout(
      () => this.progressOf(name, slot) === shown && this.#set(name, slot, {}),
      DONE_SHOWN_FOR,
    );
  }

  #set(name, slot, progress) {
    this.#progress.set(`${slot} ${name}`, progress);
    this.#changed();
  }
}

const describeSituation = ({ state, enabled, isolation }) =>
  JSON.stringify([state, enabled, isolation]);

async function attempt(action, name) {
  try {
    await action.request(name);
    return { done: action.done };
  } catch (error) {
    return { failed: `${action.label} failed: ${revealed(error.message)}` };
  }
}

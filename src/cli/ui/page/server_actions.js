// Actions on a server: when they make sense, their requests, and their progress next to the
// buttons.

import * as api from "./api.js";
import { createSwitch, element, isBusy, setAttribute, setBusy, setHidden, setText } from "./dom.js";
import { revealed } from "./format.js";

const DONE_SHOWN_FOR = 5000;

const WAKE = { label: "Wake", running: "Waking…", done: "Awake.", request: api.load };
const SLEEP = { label: "Sleep", running: "Sending to sleep…", done: "Asleep.", request: api.sleep };
const RESET = {
  label: "Reset",
  running: "Resetting…",
  done: "Failed loads are cleared.",
  request: api.reset,
};
const LOG_IN = { label: "Log in", running: "Beginning the login…", done: "", request: api.logIn };
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
const SWITCH_ON = {
  label: "Switch on",
  running: "Switching on…",
  done: "On.",
  request: (name) => api.enable(name, true),
};
const SWITCH_OFF = {
  label: "Switch off",
  running: "Switching off…",
  done: "Off.",
  request: (name) => api.enable(name, false),
};

// Wake and Sleep share a button, so that the focus stays where it is when one replaces the other.
const CHOICES = {
  power(server) {
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

export const ROW_CHOICES = ["power", "reset", "neededLogin"];
export const ALL_CHOICES = ["power", "reset", "login", "share", "separate"];

/**
 * Runs actions, and remembers the progress of each. The switch of a server has its own slot,
 * because a user can switch off a server that takes long to wake.
 */
export class ServerActions {
  #progress = new Map();
  #refresh;
  #changed;

  /** `refresh()` polls the overview; `changed()` draws the progress. */
  constructor(refresh, changed) {
    this.#refresh = refresh;
    this.#changed = changed;
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
    this.#set(name, slot, result);
    if (!result.done) return;
    setTimeout(
      () => this.progressOf(name, slot) === result && this.#set(name, slot, {}),
      DONE_SHOWN_FOR,
    );
  }

  #set(name, slot, progress) {
    this.#progress.set(`${slot} ${name}`, progress);
    this.#changed();
  }
}

async function attempt(action, name) {
  try {
    await action.request(name);
    return { done: action.done };
  } catch (error) {
    return { failed: `${action.label} failed: ${revealed(error.message)}` };
  }
}

/** Creates the switch of a server. */
export function createServerSwitch(actions, name) {
  const toggle = (isOn) => actions.run(name, "switch", isOn ? SWITCH_ON : SWITCH_OFF);
  const control = createSwitch(`Enable ${revealed(name)}`, toggle);
  return {
    node: control.node,
    update: (server) =>
      control.update(server.enabled, Boolean(actions.progressOf(name, "switch").running)),
  };
}

/**
 * Creates the buttons `choices` of a server. If the focused button goes, `fallback` gets the focus.
 */
export function createActionBar(actions, name, choices, fallback) {
  const buttons = choices.map((choice) => createActionButton(actions, name, CHOICES[choice]));
  const status = element("p", { class: "action-status", role: "status" });
  const login = createLoginProgress();
  const node = element(
    "div",
    { class: "actions" },
    element("div", { class: "buttons" }, ...buttons.map((button) => button.node)),
    status,
    login.node,
  );
  return {
    node,
    update(server) {
      const focused = buttons.find((button) => button.node === document.activeElement);
      for (const button of buttons) button.update(server);
      if (focused?.node.hidden) focusFirst(buttons, fallback);
      showProgress(
        status,
        ["switch", "button"].map((slot) => actions.progressOf(name, slot)),
      );
      login.update(server.loginProgress);
    },
  };
}

function createActionButton(actions, name, choose) {
  const node = element("button", { type: "button", click });
  let action = null;
  function click(event) {
    // The second click of a double click would hit the opposite action.
    if (!isBusy(node) && event.detail < 2) actions.run(name, "button", action);
  }
  return {
    node,
    update(server) {
      const { running } = actions.progressOf(name, "button");
      // While an action runs its button stays, although the state may already have changed.
      if (!running || running !== action) action = choose(server);
      setHidden(node, !action);
      if (!action) return;
      setText(node, running === action ? action.running : action.label);
      setAttribute(node, "aria-label", `${node.textContent} ${revealed(name)}`);
      setBusy(node, Boolean(running));
    },
  };
}

function focusFirst(buttons, fallback) {
  (buttons.find((button) => !button.node.hidden)?.node ?? fallback).focus();
}

function showProgress(status, progresses) {
  const texts = progresses.map(
    ({ running, done, failed }) => running?.running ?? failed ?? done ?? "",
  );
  setText(status, texts.filter(Boolean).join(" "));
  status.classList.toggle(
    "bad",
    progresses.some(({ failed }) => failed),
  );
}

function createLoginProgress() {
  const text = element("span");
  const link = element("a", { target: "_blank", rel: "noopener noreferrer" });
  const node = element("p", { class: "action-status", role: "status" }, text, link);
  return {
    node,
    update(progress) {
      const address = progress?.state === "waiting" ? webAddress(progress.address) : null;
      setHidden(link, !address);
      if (address) {
        setAttribute(link, "href", address.href);
        setText(link, `Open the login page of ${address.host}`);
      }
      setText(text, describeLogin(progress, address));
      node.classList.toggle("bad", Boolean(progress) && !address);
    },
  };
}

function describeLogin(progress, address) {
  if (!progress) return "";
  if (progress.state === "failed") return `The login failed: ${revealed(progress.error)}`;
  return address ? "Waiting for the login." : "The address of the login page is not a web address.";
}

/** Returns the parsed address if it is a web address: a link must not run a script. */
function webAddress(text) {
  try {
    const address = new URL(text);
    return ["https:", "http:"].includes(address.protocol) ? address : null;
  } catch {
    return null;
  }
}

// The switch and the buttons of a server, with the progress of its actions.

import { createSwitch, element, isBusy, setAttribute, setBusy, setHidden, setText } from "./dom.js";
import { revealed } from "./format.js";
import { createLoginProgress } from "./login_link.js";
import { BUTTONS, SWITCH_OFF, SWITCH_ON } from "./server_actions.js";

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
 * Creates some of `BUTTONS` for a server. If the focused button goes, the first button that is left
 * gets the focus, or `fallback`.
 */
export function createActionBar(actions, name, names, fallback) {
  const buttons = names.map((button) => createActionButton(actions, name, BUTTONS[button]));
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

function createActionButton(actions, name, actionFor) {
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
      if (!running || running !== action) action = actionFor(server);
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

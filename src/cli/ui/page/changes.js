// The changed tools of one server: the difference of their definitions, and their approval.

import * as api from "./api.js";
import { byId, element, isBusy, reconcile, setBusy, setText } from "./dom.js";
import { revealed } from "./format.js";

const SIGNS = { same: " ", removed: "−", added: "+" };
const TAGS = { same: "span", removed: "del", added: "ins" };

export class ChangesSection {
  #server = null;
  #approved;

  constructor(approved) {
    this.#approved = approved;
  }

  open(server) {
    this.#server = server;
    setText(byId("changes-status"), "");
    this.#draw([]);
  }

  async load() {
    const server = this.#server;
    try {
      const changes = await api.getChanges(server);
      if (server === this.#server) this.#draw(changes);
    } catch (error) {
      if (server !== this.#server) return;
      byId("changes-section").hidden = false;
      setText(byId("changes-status"), `The changes cannot be read: ${revealed(error.message)}`);
    }
  }

  #draw(changes) {
    // The approval message stays readable after the last change is approved.
    byId("changes-section").hidden = changes.length === 0 && !byId("changes-status").textContent;
    // A definition that changes again is a new item: the user must not approve what was not read.
    reconcile(
      byId("changes"),
      changes,
      (change) => `${change.definition} ${change.tool}`,
      (change) => this.#createItem(change),
    );
  }

  #createItem(change) {
    const name = revealed(change.tool);
    const button = element(
      "button",
      { type: "button", "aria-label": `Approve ${name}` },
      "Approve",
    );
    const status = element("span", { class: "action-status", role: "status" });
    button.addEventListener(
      "click",
      () => !isBusy(button) && this.#approve(change, button, status),
    );
    const note = change.isEarlierKnown
      ? ""
      : "The earlier definition is not known. This is the whole new one.";
    const node = element(
      "article",
      { class: "change" },
      element(
        "div",
        { class: "change-head" },
        element("h4", {}, element("code", {}, name)),
        button,
        status,
      ),
      ...(note ? [element("p", { class: "muted" }, note)] : []),
      createDiff(name, change.lines),
    );
    return { node, update() {} };
  }

  async #approve(change, button, status) {
    const server = this.#server;
    setBusy(button, true);
    status.classList.remove("bad");
    setText(status, "Approving…");
    try {
      await api.approve(server, change.tool, change.definition);
    } catch (error) {
      setBusy(button, false);
      this.#showFailure(`Approve failed: ${revealed(error.message)}`, error.status === 409, status);
      return;
    }
    if (server !== this.#server) return;
    setText(byId("changes-status"), `${revealed(change.tool)} is approved.`);
    await this.#approved();
    if (!button.isConnected) focusNext();
  }

  /**
   * Shows the failure next to the button, or above all changes if the newest definition replaces
   * the item.
   */
  async #showFailure(text, isOutdated, status) {
    setText(status, isOutdated ? "" : text);
    status.classList.add("bad");
    if (!isOutdated) return;
    setText(byId("changes-status"), text);
    await this.load();
    if (!status.isConnected) focusNext();
  }
}

/** Moves the focus to the next approval if it was on a button that is gone. */
function focusNext() {
  const { activeElement } = document;
  if (activeElement && !["BODY", "DIALOG"].includes(activeElement.tagName)) return;
  (byId("changes").querySelector("button") ?? byId("changes-title")).focus();
}

function createDiff(name, lines) {
  const node = element("div", {
    class: "diff scroll",
    tabindex: "0",
    role: "group",
    "aria-label": `Difference of ${name}`,
  });
  for (const { change, text } of lines) {
    const kind = Object.hasOwn(SIGNS, change) ? change : "same";
    const sign = element("span", { class: "sign" }, `${SIGNS[kind]} `);
    node.append(element("div", { class: kind }, sign, element(TAGS[kind], {}, revealed(text))));
  }
  return node;
}

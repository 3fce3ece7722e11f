// The changed tools of one server: the differences of their definitions, and their approval.

import * as api from "./api.js";
import { byId, element, isBusy, reconcile, setBusy, setHidden, setText, showText } from "./dom.js";
import { revealed } from "./format.js";
import { Reader } from "./reader.js";

const SIGNS = { same: " ", removed: "−", added: "+" };
const TAGS = { same: "span", removed: "del", added: "ins" };

export class ChangesSection {
  #server = null;
  #changes = [];
  #approved;
  #reader = new Reader(
    (signal) => api.getChanges(this.#server, signal),
    (changes) => this.#show(changes, ""),
    (error) => this.#show(this.#changes, `The changes cannot be read: ${revealed(error.message)}.`),
  );

  /** `approved()` is called after an approval, and returns when the overview is newer. */
  constructor(approved) {
    this.#approved = approved;
  }

  open(server) {
    this.#server = server;
    this.#reader.stop();
    setText(byId("changes-status"), "");
    this.#show([], "");
  }

  readIfChanged(key) {
    this.#reader.readIfChanged(key);
  }

  #show(changes, error) {
    this.#changes = changes;
    showText(byId("changes-error"), error);
    // The approval message stays readable after the last change is approved.
    const isEmpty = changes.length === 0 && !error && !byId("changes-status").textContent;
    setHidden(byId("changes-section"), isEmpty);
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
      ...createVariants(name, change.variants),
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
      if (server !== this.#server) return;
      setBusy(button, false);
      this.#showFailure(`Approve failed: ${revealed(error.message)}`, error.status === 409, status);
      return;
    }
    if (server !== this.#server) return;
    setText(byId("changes-status"), `${revealed(change.tool)} is approved.`);
    await Promise.all([this.#reader.readAgain(), this.#approved()]);
    if (server !== this.#server) return;
    // The approved item stays if its successor cannot be read.
    setBusy(button, false);
    setText(status, "");
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
    const server = this.#server;
    setText(byId("changes-status"), text);
    await this.#reader.readAgain();
    if (server === this.#server && !status.isConnected) focusNext();
  }
}

/** Moves the focus to the next approval if it was on a button that is gone. */
function focusNext() {
  const { activeElement } = document;
  if (activeElement && !["BODY", "DIALOG"].includes(activeElement.tagName)) return;
  (byId("changes").querySelector("button") ?? byId("changes-title")).focus();
}

function createVariants(name, variants) {
  const note = (text) => element("p", { class: "muted" }, text);
  const isOnly = variants.length === 1;
  const items = variants.flatMap(({ isEarlierKnown, lines }, index) => {
    const place = isOnly ? "" : `, definition ${index + 1} of ${variants.length}`;
    return [
      ...(isOnly ? [] : [note(`Definition ${index + 1} of ${variants.length}`)]),
      ...(isEarlierKnown
        ? []
        : [note("The earlier definition is not known. This is the whole new one.")]),
      createDiff(`Changes to ${name}${place}`, lines),
    ];
  });
  if (isOnly) return items;
  return [
    note("Its processes offer different definitions. Approve accepts all of them."),
    ...items,
  ];
}

function createDiff(label, lines) {
  const node = element("div", {
    class: "diff scroll",
    tabindex: "0",
    role: "group",
    "aria-label": label,
  });
  for (const { change, text } of lines) {
    const kind = Object.hasOwn(SIGNS, change) ? change : "same";
    const sign = element("span", { class: "sign" }, `${SIGNS[kind]} `);
    node.append(element("div", { class: kind }, sign, element(TAGS[kind], {}, revealed(text))));
  }
  return node;
}

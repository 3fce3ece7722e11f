// Creates and updates elements. Text from outside only passes through `textContent` and attributes.

export const byId = (id) => document.getElementById(id);

/** Creates an element. An attribute whose value is a function is an event listener. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else setAttribute(node, name, value);
  }
  node.append(...children);
  return node;
}

/** Sets an attribute if it differs; `null` and `false` remove it. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Sets the text if it differs, so that a text selection survives a poll. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Shows `text`, or hides the element if there is none. */
export function showText(node, text) {
  setText(node, text || "");
  setHidden(node, !text);
}

export const setHidden = (node, isHidden) => setAttribute(node, "hidden", isHidden && "");

const rowsOfParent = new WeakMap();

/**
 * Makes the children of `parent` match `items` and keeps the nodes of items that stay. Two items
 * with the same key are an error, because one of them would be missing.
 * `createRow(item)` returns `{node, update(item)}`.
 */
export function reconcile(parent, items, keyOf, createRow) {
  const earlier = rowsOfParent.get(parent) ?? new Map();
  const wanted = new Map(items.map((item) => [keyOf(item), item]));
  if (wanted.size < items.length) throw new Error(`two items of ${parent.id} have the same key`);
  const rows = new Map();
  for (const [key, row] of earlier) if (!wanted.has(key)) row.node.remove();
  let next = parent.firstChild;
  for (const [key, item] of wanted) {
    const row = earlier.get(key) ?? createRow(item);
    row.update(item);
    rows.set(key, row);
    if (row.node === next) next = next.nextSibling;
    else parent.insertBefore(row.node, next);
  }
  rowsOfParent.set(parent, rows);
}

/** Fills a `<dl>` with `[term, text]` pairs and leaves out pairs without a text. */
export function showFields(list, pairs) {
  const present = pairs.filter(([, text]) => text !== null && text !== undefined && text !== "");
  reconcile(
    list,
    present,
    ([term]) => term,
    ([term]) => {
      const value = element("dd");
      return {
        node: element("div", {}, element("dt", {}, term), value),
        update: ([, text]) => setText(value, text),
      };
    },
  );
}

/** Creates a switch; `toggle(isOn)` is called with the state that the user wants. */
export function createSwitch(label, toggle) {
  const node = element("button", {
    type: "button",
    role: "switch",
    class: "switch",
    "aria-label": label,
    click,
  });
  function click() {
    if (!isBusy(node)) toggle(node.getAttribute("aria-checked") !== "true");
  }
  return {
    node,
    update(isOn, busy) {
      setAttribute(node, "aria-checked", isOn ? "true" : "false");
      setBusy(node, busy);
    },
  };
}

/** Disables a button with `aria-disabled`, because `disabled` would take the focus away. */
export function setBusy(button, busy) {
  setAttribute(button, "aria-disabled", busy ? "true" : null);
}

export const isBusy = (button) => button.getAttribute("aria-disabled") === "true";

/**
 * Closes a dialog by its button and by a click outside; Escape is the browser's own. A drag that
 * begins in the dialog, such as a selection of text, does not close it.
 */
export function prepareDialog(dialog, closed = () => {}) {
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  let isPressedOutside = false;
  dialog.addEventListener("pointerdown", ({ target }) => (isPressedOutside = target === dialog));
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog && isPressedOutside) dialog.close();
  });
  dialog.addEventListener("close", closed);
}

// The tools of one server, with a filter and a switch for each.

import * as api from "./api.js";
import { byId, createSwitch, element, reconcile, setHidden, setText, showText } from "./dom.js";
import { matches } from "./filter.js";
import { count, number, revealed } from "./format.js";
import { Reader } from "./reader.js";
import { createBadge } from "./server_state.js";

const PAGE = 200;
const LONG_DESCRIPTION = 200;

const STATES = {
  shown: ["Shown", "good", ""],
  hidden: ["Hidden", "off", "Hidden: switched off in the config, so agents do not see it."],
  stale: ["Stale", "idle", "Stale: the config names it, but the server no longer offers it."],
  blocked: [
    "Blocked",
    "bad",
    "Blocked: its definition changed, so agents do not see it until you approve it.",
  ],
};

export class ToolsSection {
  #server = null;
  #tools = null;
  #limit = PAGE;
  #busy = new Set();
  #errors = new Map();
  #toggled;
  #filter = byId("tools-filter");
  #reader = new Reader(
    (signal) => api.getTools(this.#server, signal),
    (tools) => this.#show(tools),
    (error) => this.#showError(`The tools cannot be read: ${revealed(error.message)}.`),
  );

  /** `toggled()` is called after a switch, to poll the overview. */
  constructor(toggled) {
    this.#toggled = toggled;
    this.#filter.addEventListener("input", () => {
      this.#limit = PAGE;
      this.#draw();
    });
    byId("tools-more").addEventListener("click", () => this.#showMore());
  }

  open(server) {
    this.#server = server;
    this.#reader.stop();
    this.#tools = null;
    this.#limit = PAGE;
    this.#busy.clear();
    this.#errors.clear();
    this.#filter.value = "";
    reconcile(byId("tools"), [], String);
    byId("tools-more").hidden = true;
    this.#showError("");
    setText(byId("tools-status"), "Loading…");
  }

  readIfChanged(key) {
    this.#reader.readIfChanged(key);
  }

  #show(tools) {
    this.#showError("");
    this.#tools = withKeys(tools).map((tool) => ({ ...tool, text: searchText(tool) }));
    this.#draw();
  }

  #showError(text) {
    showText(byId("tools-error"), text);
    if (text && !this.#tools) setText(byId("tools-status"), "");
  }

  #draw() {
    if (!this.#tools) return;
    const matching = this.#tools.filter((tool) => matches(tool.text, this.#filter.value));
    const shown = matching.slice(0, this.#limit);
    reconcile(
      byId("tools"),
      shown,
      (tool) => tool.key,
      (tool) => this.#createItem(tool),
    );
    const rest = matching.length - shown.length;
    byId("tools-more").hidden = rest === 0;
    setText(byId("tools-more"), `Show ${number(Math.min(rest, PAGE))} more`);
    setText(
      byId("tools-status"),
      describeAmount(shown.length, matching.length, this.#tools.length),
    );
  }

  #showMore() {
    const last = byId("tools").lastElementChild;
    this.#limit += PAGE;
    this.#draw();
    // The button may have gone; the first new tool is next in reading order.
    if (byId("tools-more").hidden) last.nextElementSibling?.querySelector("button").focus();
  }

  async #toggle(name, enabled) {
    const server = this.#server;
    this.#busy.add(name);
    this.#errors.delete(name);
    this.#draw();
    try {
      await api.enableTool(server, name, enabled);
    } catch (error) {
      if (server === this.#server) this.#errors.set(name, error.message);
    }
    if (server !== this.#server) return;
    // The config may have changed although the switch failed.
    await this.#reader.readAgain();
    this.#toggled();
    if (server !== this.#server) return;
    this.#busy.delete(name);
    this.#draw();
  }

  #createItem({ name }) {
    const control = createSwitch(`Show ${revealed(name)} to agents`, (isOn) =>
      this.#toggle(name, isOn),
    );
    const badge = createBadge();
    const changed = element("span", { class: "badge", "data-tone": "warn" }, "Changed");
    const description = createDescription();
    const note = element("p", { class: "note" });
    const warning = element("p", { class: "note warn" });
    const error = element("p", { class: "bad", role: "alert" });
    const head = element(
      "div",
      { class: "tool-head" },
      element("code", {}, revealed(name)),
      badge.node,
      changed,
    );
    const node = element(
      "li",
      {},
      control.node,
      element("div", {}, head, description.node, note, warning, error),
    );
    return {
      node,
      update: (tool) => {
        const [word, tone, meaning] = STATES[tool.state] ?? [revealed(tool.state), "idle", ""];
        control.update(tool.state !== "hidden", this.#busy.has(name));
        // The server does not offer a stale tool, so that no switch can show it.
        setHidden(control.node, tool.state === "stale");
        badge.update(word, tone);
        badge.node.hidden = tool.state === "shown";
        changed.hidden = !tool.changed;
        description.update(revealed(tool.description));
        showText(note, meaning);
        showText(warning, tool.hiddenCharacter && describeHiddenCharacter(tool.hiddenCharacter));
        const reason = this.#errors.get(name);
        showText(error, reason && `The switch failed: ${revealed(reason)}`);
      },
    };
  }
}

/** Gives each tool a key of its own, although a server may list a name twice. */
function withKeys(tools) {
  const seen = new Map();
  return tools.map((tool) => {
    const occurrence = (seen.get(tool.name) ?? 0) + 1;
    seen.set(tool.name, occurrence);
    return { ...tool, key: `${occurrence} ${tool.name}` };
  });
}

const searchText = ({ name, description, state, changed }) =>
  `${name} ${description} ${state}${changed ? " changed" : ""}`;

function describeHiddenCharacter(character) {
  const warning = `Warning: its definition contains the hidden character ${revealed(character)}.`;
  return `${warning} Such characters can hide instructions from you.`;
}

function describeAmount(shown, matching, all) {
  if (all === 0) return "No tools are known yet. Wake the server to read them.";
  if (matching === 0) return `None of ${count(all, "tool")} matches the filter.`;
  if (shown === all) return count(all, "tool");
  const selection =
    matching === all
      ? count(all, "tool")
      : `${count(matching, "matching tool")} (${number(all)} in all)`;
  return shown === matching ? selection : `The first ${number(shown)} of ${selection}`;
}

/** Creates a description that is cut after some lines; a button shows the rest. */
function createDescription() {
  const text = element("p", { class: "muted pre" });
  const more = element("button", {
    type: "button",
    class: "link",
    "aria-expanded": "false",
    hidden: "",
    click,
  });
  function click() {
    const isOpen = !text.classList.toggle("clamp");
    more.setAttribute("aria-expanded", isOpen);
    setText(more, isOpen ? "Show less" : "Show all");
  }
  setText(more, "Show all");
  return {
    node: element("div", {}, text, more),
    update(value) {
      if (text.textContent === value) return;
      showText(text, value);
      const isLong = value.length > LONG_DESCRIPTION || value.split("\n").length > 2;
      text.classList.toggle("clamp", isLong);
      more.hidden = !isLong;
      more.setAttribute("aria-expanded", "false");
      setText(more, "Show all");
    },
  };
}

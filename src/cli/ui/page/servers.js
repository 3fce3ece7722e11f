// The view of all servers.

import { byId, element, reconcile, setAttribute, setHidden, setText, showText } from "./dom.js";
import { matches } from "./filter.js";
import { bytes, count, number, revealed } from "./format.js";
import { createActionBar, createServerSwitch } from "./action_bar.js";
import { ROW_BUTTONS } from "./server_actions.js";
import { createBadge, describeAttempts, describeState, needsAttention } from "./server_state.js";

export class ServersView {
  #actions;
  #servers = null;
  #filter = byId("servers-filter");
  #attention = byId("servers-attention");

  constructor(actions) {
    this.#actions = actions;
    this.#filter.addEventListener("input", () => this.draw());
    this.#attention.addEventListener("change", () => this.draw());
  }

  update(servers) {
    this.#servers = servers;
    this.draw();
  }

  draw() {
    if (!this.#servers) return;
    const shown = this.#matching();
    reconcile(
      byId("servers-rows"),
      shown,
      (server) => server.name,
      (server) => createRow(server.name, this.#actions),
    );
    setHidden(byId("servers-table"), shown.length === 0);
    showText(byId("servers-empty"), shown.length === 0 ? this.#whyEmpty() : "");
    const all = this.#servers.length;
    setText(
      byId("servers-count"),
      `${shown.length === all ? "" : `${shown.length} of `}${count(all, "server")}`,
    );
    const waiting = this.#servers.filter(needsAttention).length;
    setText(byId("servers-attention-label"), `Only servers that need attention (${waiting})`);
  }

  #matching() {
    return this.#servers.filter((server) => {
      // A row that has the focus stays, so that the user can read the result of an action.
      if (rowHasFocus(server.name)) return true;
      if (this.#attention.checked && !needsAttention(server)) return false;
      const state = `${server.state ?? ""} ${describeState(server).word}`;
      return matches(`${server.name} ${server.description} ${state}`, this.#filter.value);
    });
  }

  #whyEmpty() {
    if (this.#servers.length === 0)
      return "The config has no servers. “dormouse import” copies the servers of your AI tools.";
    if (this.#attention.checked && !this.#filter.value) return "No server needs attention.";
    return "No server matches the filter.";
  }
}

const rowHasFocus = (name) =>
  document.activeElement?.closest?.("#servers-rows tr")?.dataset.server === name;

function createRow(name, actions) {
  const link = element(
    "a",
    { class: "name", href: `#servers/${encodeURIComponent(name)}` },
    revealed(name),
  );
  const description = element("p", { class: "clamp muted" });
  const error = element("p", { class: "clamp bad" });
  const control = createServerSwitch(actions, name);
  const bar = createActionBar(actions, name, ROW_BUTTONS, link);
  const state = createStateCell();
  const cells = ["Tools", "Tokens", "Memory", "Calls"].map(createCell);
  const [tools, tokens, memory, calls] = cells;
  const node = element(
    "tr",
    { role: "row", "data-server": name },
    element("th", { scope: "row", role: "rowheader" }, link, description, error),
    element("td", { role: "cell", class: "toggle" }, control.node),
    state.node,
    ...cells.map((cell) => cell.node),
    element("td", { role: "cell", class: "action-cell" }, bar.node),
  );
  return {
    node,
    update(server) {
      control.update(server);
      showText(description, revealed(server.description));
      showText(error, server.lastError && `Last error: ${revealed(server.lastError)}`);
      state.update(server);
      const { toolCounts } = server;
      tools.update(toolCounts && number(toolCounts.shown), describeSuspects(toolCounts));
      tokens.update(server.tokens !== null && number(server.tokens));
      memory.update(server.memory !== null && bytes(server.memory));
      calls.update(
        server.state !== null && number(server.calls),
        server.failedCalls > 0 && `${number(server.failedCalls)} failed`,
      );
      bar.update(server);
    },
  };
}

function createStateCell() {
  const badge = createBadge();
  const note = element("span", { class: "note" });
  return {
    node: element("td", { role: "cell", class: "state", "data-label": "State" }, badge.node, note),
    update(server) {
      const { word, tone } = describeState(server);
      badge.update(word, tone);
      showText(note, describeAttempts(server));
    },
  };
}

/** Creates a cell with a value and a note that stands out. */
function createCell(label) {
  const value = element("span");
  const note = element("span", { class: "note warn" });
  const node = element(
    "td",
    { role: "cell", "data-label": label, class: label === "Tools" ? null : "number" },
    value,
    note,
  );
  return {
    node,
    update(text, noteText) {
      setText(value, text || "–");
      setAttribute(node, "data-empty", text || noteText ? null : "");
      showText(note, noteText);
    },
  };
}

function describeSuspects(tools) {
  if (!tools) return "";
  return ["changed", "blocked"]
    .filter((kind) => tools[kind] > 0)
    .map((kind) => `${tools[kind]} ${kind}`)
    .join(", ");
}

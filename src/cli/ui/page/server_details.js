// The dialog with all that is known about one server.

import { createActionBar, createServerSwitch } from "./action_bar.js";
import { createCallItem } from "./call_details.js";
import { ChangesSection } from "./changes.js";
import {
  byId,
  element,
  prepareDialog,
  reconcile,
  setHidden,
  setText,
  showFields,
  showText,
} from "./dom.js";
import { ago, bytes, count, dateAndClock, duration, number, revealed } from "./format.js";
import { ALL_BUTTONS } from "./server_actions.js";
import { createBadge, describeAttempts, describeState } from "./server_state.js";
import { StderrSection } from "./stderr.js";
import { ToolsSection } from "./tools.js";

const MAX_CALLS = 20;

export class ServerDialog {
  #dialog = byId("server-dialog");
  #actions;
  #refresh;
  #name = null;
  // The servers of the last overview; null before the first one.
  #servers = null;
  #badge = createBadge();
  #controls = [];
  #tools = new ToolsSection(() => this.#refresh());
  #changes = new ChangesSection(() => this.#refresh());
  #stderr = new StderrSection();

  constructor(actions, refresh, closed) {
    this.#actions = actions;
    this.#refresh = refresh;
    byId("server-state").append(this.#badge.node);
    prepareDialog(this.#dialog, () => {
      this.#name = null;
      closed();
    });
  }

  get name() {
    return this.#name;
  }

  open(name) {
    if (name === this.#name) return;
    this.#name = name;
    setText(byId("server-title"), revealed(name));
    this.#createControls();
    for (const section of [this.#tools, this.#changes, this.#stderr]) section.open(name);
    this.draw();
    this.read();
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#dialog.querySelector(".dialog-body").scrollTop = 0;
  }

  close() {
    if (this.#dialog.open) this.#dialog.close();
  }

  update(servers) {
    this.#servers = servers;
    this.draw();
  }

  draw() {
    if (!this.#name) return;
    const server = this.#server;
    for (const id of ["server-state", "server-actions", "server-sections"])
      setHidden(byId(id), !server);
    if (!server) return this.#showMissing();
    const { word, tone, meaning } = describeState(server);
    this.#badge.update(word, tone);
    showText(byId("server-description"), revealed(server.description));
    showText(byId("server-meaning"), meaning);
    showText(byId("server-error"), server.lastError && `Last error: ${revealed(server.lastError)}`);
    showFields(byId("server-facts"), describeServer(server));
    setHidden(byId("stderr-section"), server.transport !== "stdio");
    for (const control of this.#controls) control.update(server);
  }

  drawCalls({ calls, error }, isRecorded) {
    if (!this.#name) return;
    const own = calls.filter((call) => call.server === this.#name).slice(0, MAX_CALLS);
    reconcile(byId("server-calls"), own, (call) => call.id, createCallItem);
    const reason = error && `The calls cannot be read: ${revealed(error.message)}.`;
    const missing = isRecorded ? "No call is recorded." : "The call log is off.";
    showText(byId("server-calls-empty"), reason || (own.length ? "" : missing));
  }

  /**
   * Reads the parts that the overview does not contain. Catalogs are read again when the numbers of
   * their tools or tokens change.
   */
  read() {
    const server = this.#server;
    if (!server) return;
    if (server.transport === "stdio") this.#stderr.read();
    const key = JSON.stringify([server.toolCounts, server.tokens]);
    this.#tools.readIfChanged(key);
    this.#changes.readIfChanged(key);
  }

  get #server() {
    return this.#servers?.find((server) => server.name === this.#name) ?? null;
  }

  #createControls() {
    const control = createServerSwitch(this.#actions, this.#name);
    const bar = createActionBar(this.#actions, this.#name, ALL_BUTTONS, byId("server-title"));
    byId("server-actions").replaceChildren(
      control.node,
      element("span", { "aria-hidden": "true" }, "Enabled"),
      bar.node,
    );
    this.#controls = [control, bar];
  }

  #showMissing() {
    const isKnown = this.#servers !== null;
    showText(byId("server-meaning"), isKnown ? "This server is not in the config." : "");
    for (const id of ["server-description", "server-error"]) showText(byId(id), "");
    showFields(byId("server-facts"), []);
  }
}

function describeServer(server) {
  const isRunning = server.state !== null;
  return [
    ["Connection", server.transport === "stdio" ? "Local process (stdio)" : "HTTP"],
    ["Sharing", server.canShare ? describeIsolation(server.isolation) : null],
    ["Attempts", describeAttempts(server)],
    ["Connected now", isRunning ? count(server.awake, "instance") : null],
    ["Memory", server.memory === null ? null : bytes(server.memory)],
    ["Calls", isRunning ? `${number(server.calls)}, ${number(server.failedCalls)} failed` : null],
    ["Wakes", isRunning ? number(server.wakes) : null],
    [
      "Last wake",
      server.lastWake && `${ago(server.lastWake.at)}, took ${duration(server.lastWake.took)}`,
    ],
    ["Tools", server.toolCounts && describeTools(server.toolCounts)],
    ["Tokens of its tools", server.tokens === null ? null : number(server.tokens)],
    ["Login", server.login && describeLogin(server.login)],
  ];
}

function describeIsolation(isolation) {
  const texts = {
    auto: "Automatic: sessions share a process if that is safe",
    shared: "Sessions share one process",
    session: "Each session has its own process",
  };
  return texts[isolation] ?? revealed(isolation);
}

function describeTools(tools) {
  const kinds = ["shown", "hidden", "blocked", "stale", "changed"];
  return kinds
    .filter((kind) => kind === "shown" || tools[kind] > 0)
    .map((kind) => `${number(tools[kind])} ${kind}`)
    .join(", ");
}

function describeLogin(login) {
  const parts = [`at ${revealed(login.issuer)}`];
  if (login.scopes?.length) parts.push(`scopes ${revealed(login.scopes.join(", "))}`);
  if (login.wanted?.length)
    parts.push(`the server also demands the scopes ${revealed(login.wanted.join(", "))}`);
  if (login.expiresAt) parts.push(`token until ${dateAndClock(new Date(login.expiresAt * 1000))}`);
  parts.push(login.renewable ? "renewed automatically" : "not renewable");
  if (!login.usable) parts.push("not usable");
  return parts.join("; ");
}

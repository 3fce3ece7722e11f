// The dialog with all that is known about one server.

import * as api from "./api.js";
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
import { ALL_CHOICES, createActionBar, createServerSwitch } from "./server_actions.js";
import { createBadge, describeAttempts, describeState } from "./server_state.js";
import { StderrSection } from "./stderr.js";
import { ToolsSection } from "./tools.js";

const MAX_CALLS = 20;

export class ServerDialog {
  #dialog = byId("server-dialog");
  #actions;
  #refresh;
  #name = null;
  #server = null;
  #counts = null;
  #badge = createBadge();
  #controls = [];
  #tools = new ToolsSection(() => this.#refresh());
  #changes = new ChangesSection(() => this.#approved());
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
    this.#server = this.#counts = null;
    setText(byId("server-title"), revealed(name));
    this.#createControls();
    for (const section of [this.#tools, this.#changes, this.#stderr]) section.open(name);
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#dialog.querySelector(".dialog-body").scrollTop = 0;
  }

  close() {
    if (this.#dialog.open) this.#dialog.close();
  }

  update(servers) {
    if (!this.#name) return;
    this.#server = servers.find((server) => server.name === this.#name) ?? null;
    this.draw();
  }

  draw() {
    if (!this.#name) return;
    const server = this.#server;
    setHidden(byId("server-actions"), !server);
    if (!server) return showMissing();
    const { word, tone, meaning } = describeState(server);
    this.#badge.update(word, tone);
    showText(byId("server-description"), revealed(server.description));
    showText(byId("server-meaning"), meaning);
    showText(byId("server-error"), server.lastError && `Last error: ${revealed(server.lastError)}`);
    showFields(byId("server-facts"), describeServer(server));
    setHidden(byId("stderr-section"), server.transport !== "stdio");
    for (const control of this.#controls) control.update(server);
  }

  drawCalls(calls, isRecorded) {
    if (!this.#name) return;
    const own = calls.filter((call) => call.server === this.#name).slice(0, MAX_CALLS);
    reconcile(byId("server-calls"), own, (call) => call.id, createCallItem);
    const missing = isRecorded ? "No call is recorded." : "The call log is off.";
    showText(byId("server-calls-empty"), own.length ? "" : missing);
  }

  /**
   * Fetches what the overview does not contain. Catalogs are fetched again when their counts
   * change.
   */
  async poll() {
    if (!this.#server) return;
    const counts = JSON.stringify(this.#server.toolCounts);
    const work = [];
    if (this.#server.transport === "stdio") work.push(this.#stderr.poll());
    if (counts !== this.#counts) {
      this.#counts = counts;
      work.push(this.#tools.load(), this.#changes.load());
    }
    await Promise.all(work);
  }

  #createControls() {
    const control = createServerSwitch(this.#actions, this.#name);
    const bar = createActionBar(this.#actions, this.#name, ALL_CHOICES, byId("server-title"));
    byId("server-actions").replaceChildren(
      control.node,
      element("span", { "aria-hidden": "true" }, "Enabled"),
      bar.node,
    );
    this.#controls = [control, bar];
  }

  async #approved() {
    await Promise.all([this.#tools.load(), this.#changes.load()]);
    this.#refresh();
  }
}

function showMissing() {
  showText(byId("server-meaning"), "This server is not in the config.");
  for (const id of ["server-description", "server-error", "server-facts"])
    byId(id).replaceChildren();
}

function describeServer(server) {
  const isRunning = server.state !== null;
  return [
    ["Connection", server.transport === "stdio" ? "A process here (stdio)" : "HTTP"],
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
  if (login.expiresAt) parts.push(`token until ${dateAndClock(new Date(login.expiresAt * 1000))}`);
  parts.push(login.renewable ? "renewed by itself" : "not renewable");
  if (!login.usable) parts.push("not usable");
  return parts.join("; ");
}

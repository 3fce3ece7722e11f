// The head of the page: the config, the running processes, and a banner while polls fail.

import { RequestError } from "./api.js";
import { byId, setAttribute, setText } from "./dom.js";
import { clock, count, revealed } from "./format.js";

const banner = byId("connection");
let lastAnswer = null;

export function showHeader({ config, processes, version }) {
  lastAnswer = new Date();
  setText(byId("version"), revealed(version));
  setText(byId("config"), revealed(config));
  setText(byId("processes"), describeProcesses(processes, version));
  setAttribute(byId("processes"), "data-tone", processes.length ? "good" : "off");
}

function describeProcesses(processes, version) {
  if (processes.length === 0) return "No dormouse is running.";
  const amount =
    processes.length === 1
      ? "One dormouse is running"
      : `${processes.length} dormouse processes are running`;
  return `${amount}: ${processes.map((process) => describeProcess(process, version)).join("; ")}.`;
}

function describeProcess(process, version) {
  const clients = process.clients.length ? ` (${process.clients.map(revealed).join(", ")})` : "";
  const other = process.version === version ? "" : `, version ${revealed(process.version)}`;
  return `process ${process.pid}${other} with ${process.hosts ? count(process.hosts, "host") : "no host"}${clients}`;
}

/** Shows why the last poll failed, or nothing if `error` is null. */
export function showConnection(error) {
  if (error && !(error instanceof RequestError)) console.error(error);
  setText(banner, error ? `${describeFailure(error)}${describeAge()}` : "");
  placeBanner();
}

/** Moves the banner into the topmost dialog, because an open dialog covers the rest of the page. */
function placeBanner() {
  const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? byId("content");
  if (banner.textContent && banner.parentNode !== place) place.prepend(banner);
}

document.addEventListener("focusin", placeBanner);
document.addEventListener("close", placeBanner, true);

function describeFailure(error) {
  if (error.kind === "ended") return "The session of this page has ended. Run “dormouse ui” again.";
  if (error.kind === "unreachable") return `${error.message}. Run “dormouse ui” again.`;
  return `The page cannot be updated: ${revealed(error.message)}.`;
}

const describeAge = () => (lastAnswer ? ` What you see is from ${clock(lastAnswer)}.` : "");

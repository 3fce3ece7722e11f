// The head of the page: the config, the running processes, and a banner while polls fail.

import { RequestError } from "./api.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { clock, count, revealed } from "./format.js";

const banner = byId("connection");
let lastAnswer = null;
let hasSignIn = false;
// The text of the banner.
let shown = "";

export function showHeader({ config, processes, version, hasSignIn: canSignIn }) {
  lastAnswer = new Date();
  hasSignIn = canSignIn;
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
  const hosts = process.hosts ? count(process.hosts, "host") : "no host";
  return `process ${process.pid}${other} with ${hosts}${clients}`;
}

/** Shows why the last poll failed, or nothing if `error` is null. */
export function showConnection(error) {
  if (error && !(error instanceof RequestError)) console.error(error);
  const text = error ? `${describeFailure(error)}${describeAge()}` : "";
  // An alert that does not change is not announced again.
  if (text !== shown)
    banner.replaceChildren(text, ...(canSignIn(error) ? [" ", createSignIn()] : []));
  shown = text;
  placeBanner();
}

const canSignIn = (error) => error?.kind === "ended" && hasSignIn;

const createSignIn = () => element("a", { href: "../sign-in" }, "Sign in");

/** Moves the banner into the topmost dialog, because an open dialog covers the rest of the page. */
function placeBanner() {
  const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? byId("content");
  if (banner.textContent && banner.parentNode !== place) place.prepend(banner);
}

document.addEventListener("focusin", placeBanner);
document.addEventListener("close", placeBanner, true);

function describeFailure(error) {
  const retry = "The page tries again by itself.";
  switch (error.kind) {
    case "ended":
      return `${capitalized(revealed(error.message))}.`;
    case "silent":
      return `dormouse does not answer. ${retry}`;
    case "unreachable":
      // A page with a sign-in belongs to a process that serves hosts, which “dormouse ui” is not.
      if (hasSignIn) return `dormouse cannot be reached. ${retry}`;
      return "dormouse ui has ended. Run “dormouse ui” again.";
    default:
      return `The page cannot be updated: ${revealed(error.message)}.`;
  }
}

const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const describeAge = () => (lastAnswer ? ` Last update: ${clock(lastAnswer)}.` : "");

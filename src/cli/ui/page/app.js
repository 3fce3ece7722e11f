// Connects the views with the poller and with the fragment of the address.

import { getOverview } from "./api.js";
import { CallLog } from "./call_log.js";
import { CallsView } from "./calls.js";
import { byId } from "./dom.js";
import { showConnection, showHeader } from "./header.js";
import { Poller } from "./poller.js";
import { parseFragment, showView } from "./route.js";
import { SavingsView } from "./savings.js";
import { SearchView } from "./search.js";
import { ServerActions } from "./server_actions.js";
import { ServerDialog } from "./server_details.js";
import { ServersView } from "./servers.js";

const poller = new Poller(poll, showConnection);
const refresh = () => poller.now();
const actions = new ServerActions(refresh, drawServers);
const servers = new ServersView(actions);
const dialog = new ServerDialog(actions, refresh, forgetServer);
const callLog = new CallLog();
const calls = new CallsView(callLog);
const savings = new SavingsView();
new SearchView();

let route = parseFragment(location.hash);

async function poll() {
  const overview = await getOverview();
  showHeader(overview);
  servers.update(overview.servers);
  dialog.update(overview.servers);
  const parts = await Promise.allSettled([
    pollCalls(overview.callLog),
    savings.poll(),
    dialog.poll(),
  ]);
  return parts.find((part) => part.reason)?.reason;
}

async function pollCalls(setting) {
  if (route.view !== "calls" && !dialog.name) return;
  if (setting !== "off") await callLog.poll();
  dialog.drawCalls(callLog.calls, setting !== "off");
  if (route.view === "calls") calls.update(setting);
}

function drawServers() {
  servers.draw();
  dialog.draw();
}

function follow() {
  route = parseFragment(location.hash);
  showView(route.view);
  if (route.server) dialog.open(route.server);
  else dialog.close();
  if (route.view === "savings") savings.draw();
  refresh();
}

/** Removes the closed server from the address, but leaves an address that names another view. */
function forgetServer() {
  if (parseFragment(location.hash).server) history.replaceState(null, "", "#servers");
  route = parseFragment(location.hash);
  // A link of another view opened the dialog, or the address did: the focus cannot return there.
  if (document.activeElement === document.body) byId("content").focus();
}

byId("skip").addEventListener("click", (event) => {
  // The fragment belongs to the views.
  event.preventDefault();
  byId("content").focus();
});
addEventListener("hashchange", follow);
follow();

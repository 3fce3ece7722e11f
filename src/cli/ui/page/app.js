// Connects the views with the poller and with the fragment of the address.

import { getOverview } from "./api.js";
import { closeCall } from "./call_details.js";
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
const dialog = new ServerDialog(actions, refresh, removeServerFromAddress);
const callLog = new CallLog(drawCalls);
const calls = new CallsView(callLog);
const savings = new SavingsView();
new SearchView();

let route = parseFragment(location.hash);
let isRecorded = true;

/** Reads the overview, and starts to read the parts that are shown, but does not wait for them. */
async function poll() {
  const overview = await getOverview();
  showHeader(overview);
  actions.update(overview.servers);
  servers.update(overview.servers);
  dialog.update(overview.servers);
  dialog.read();
  savings.read();
  isRecorded = overview.callLog !== "off";
  drawCalls();
  if (isRecorded && (route.view === "calls" || dialog.name)) callLog.read();
}

function drawServers() {
  servers.draw();
  dialog.draw();
}

function drawCalls() {
  dialog.drawCalls(callLog, isRecorded);
  if (route.view === "calls") calls.draw(isRecorded);
}

function showAddress() {
  route = parseFragment(location.hash);
  closeCall();
  showView(route.view);
  if (route.server) dialog.open(route.server);
  else dialog.close();
  drawCalls();
  if (route.view === "savings") savings.draw();
  refresh();
}

/** Removes the closed server from the address, but leaves an address that names another view. */
function removeServerFromAddress() {
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
addEventListener("hashchange", showAddress);
showAddress();

// The view of saved tokens: in all, by server and over time.

import { getSavings } from "./api.js";
import { Chart } from "./chart.js";
import { byId, element, reconcile, setText } from "./dom.js";
import { compact, count, number, revealed } from "./format.js";
import { lastDays, lastHours } from "./periods.js";

const INTERVAL = 10_000;

export class SavingsView {
  #savings = null;
  #fetchedAt = -Infinity;
  #chart = new Chart(byId("savings-chart"));

  constructor() {
    for (const radio of document.getElementsByName("period"))
      radio.addEventListener("change", () => this.draw());
  }

  async poll() {
    if (performance.now() - this.#fetchedAt < INTERVAL) return;
    this.#fetchedAt = performance.now();
    try {
      this.#savings = await getSavings();
    } catch (error) {
      return setText(
        byId("savings-total"),
        `The savings cannot be read: ${revealed(error.message)}`,
      );
    }
    setText(byId("saved"), describeTotal(this.#savings));
    this.draw();
  }

  draw() {
    if (!this.#savings) return;
    const { estimator, hours, servers } = this.#savings;
    setText(byId("savings-total"), describeTotal(this.#savings));
    setText(byId("savings-estimator"), `The numbers are estimates (${revealed(estimator)}).`);
    drawServers(servers);
    const isByHour = document.querySelector("[name=period]:checked").value === "hours";
    const spans = isByHour ? lastHours(hours) : lastDays(hours);
    this.#chart.draw(spans, describeSpans(spans, isByHour));
    const rows = spans.filter((span) => span.turns > 0 || span.tokens > 0).reverse();
    reconcile(byId("savings-times"), rows, (span) => span.title, createTimeRow);
  }
}

function describeTotal({ tokens, turns }) {
  if (!tokens) return "No tokens saved yet.";
  return `About ${compact(tokens)} tokens saved in ${count(turns, "turn")}.`;
}

function describeSpans(spans, isByHour) {
  const all = spans.reduce((sum, span) => sum + span.tokens, 0);
  const most = spans.reduce((best, span) => (span.tokens > best.tokens ? span : best));
  const start = `Tokens saved ${isByHour ? "by hour in the last 24 hours" : "by day in the last 14 days"}: ${compact(all)} in all`;
  return all ? `${start}, most in ${most.title} (${compact(most.tokens)}).` : `${start}.`;
}

function drawServers(servers) {
  const sorted = servers.toSorted((one, other) => other.tokens - one.tokens);
  const most = Math.max(1, ...sorted.map((entry) => entry.tokens));
  reconcile(
    byId("savings-servers"),
    sorted,
    (entry) => entry.server,
    ({ server }) => {
      const bar = element("div", { class: "bar" });
      const tokens = element("td", { class: "number" });
      const name = element(
        "th",
        { scope: "row" },
        element("span", { class: "name" }, revealed(server)),
        bar,
      );
      return {
        node: element("tr", {}, name, tokens),
        update(entry) {
          bar.style.width = `${(100 * entry.tokens) / most}%`;
          setText(tokens, number(entry.tokens));
        },
      };
    },
  );
}

function createTimeRow(span) {
  const [turns, tokens] = [element("td", { class: "number" }), element("td", { class: "number" })];
  const node = element("tr", {}, element("th", { scope: "row" }, span.title), turns, tokens);
  return {
    node,
    update(current) {
      setText(turns, number(current.turns));
      setText(tokens, number(current.tokens));
    },
  };
}

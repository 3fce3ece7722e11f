// The view of saved tokens: in all, by server and over time.

import { getSavings } from "./api.js";
import { Chart } from "./chart.js";
import { byId, element, reconcile, setText, showText } from "./dom.js";
import { compactCount, count, number, revealed } from "./format.js";
import { lastDays, lastHours } from "./periods.js";
import { Reader } from "./reader.js";

const INTERVAL = 10_000;

export class SavingsView {
  #savings = null;
  #requestedAt = -Infinity;
  #chart = new Chart(byId("savings-chart"));
  #reader = new Reader(
    (signal) => getSavings(signal),
    (savings) => this.#show(savings),
    (error) => this.#showError(`The savings cannot be read: ${revealed(error.message)}.`),
  );

  constructor() {
    for (const radio of document.getElementsByName("period"))
      radio.addEventListener("change", () => this.draw());
  }

  /** Reads the savings if the last request is long ago. */
  read() {
    if (performance.now() - this.#requestedAt < INTERVAL) return;
    this.#requestedAt = performance.now();
    this.#reader.read();
  }

  #show(savings) {
    this.#savings = savings;
    this.#showError("");
    setText(byId("saved"), describeTotal(savings));
    this.draw();
  }

  #showError(text) {
    showText(byId("savings-error"), text);
  }

  draw() {
    if (!this.#savings) return;
    const { estimator, hours, servers } = this.#savings;
    setText(byId("savings-total"), describeTotal(this.#savings));
    const how = estimator && `The numbers are estimates (${revealed(estimator)}).`;
    showText(byId("savings-estimator"), how);
    drawServers(servers);
    const isByHour = document.querySelector("[name=period]:checked").value === "hours";
    const spans = isByHour ? lastHours(hours) : lastDays(hours);
    this.#chart.draw(spans, describeSpans(spans, isByHour));
    const rows = spans.filter((span) => span.turns > 0 || span.tokens > 0).reverse();
    reconcile(byId("savings-times"), rows, (span) => span.start, createTimeRow);
  }
}

/** Describes the savings in the log, or since the processes started if there is no log. */
function describeTotal(savings) {
  const { turns, tokens } = savings.hours.length ? total(savings.hours) : savings;
  if (!tokens) return "No tokens saved yet.";
  return `About ${compactCount(tokens, "token")} saved in ${count(turns, "turn")}.`;
}

const total = (spans) =>
  spans.reduce(
    (sum, { turns, tokens }) => ({ turns: sum.turns + turns, tokens: sum.tokens + tokens }),
    { turns: 0, tokens: 0 },
  );

function describeSpans(spans, isByHour) {
  const { tokens } = total(spans);
  const most = spans.reduce((best, span) => (span.tokens > best.tokens ? span : best));
  const period = isByHour ? "by hour in the last 24 hours" : "by day in the last 14 days";
  const start = `Tokens saved ${period}: ${compactCount(tokens, "token")} in all`;
  const peak = `, most in ${most.title} (${compactCount(most.tokens, "token")})`;
  return `${start}${tokens ? peak : ""}.`;
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

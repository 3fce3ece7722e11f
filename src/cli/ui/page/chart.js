// A bar chart in SVG. Its text alternative is the label of the picture and the table below it.

import { abbreviated, compactCount, count } from "./format.js";

const HEIGHT = 180;
const TOP = 10;
const BOTTOM = 22;
const LEFT = 40;
// A label needs this many pixels.
const LABEL_WIDTH = 56;

export class Chart {
  #parent;
  #drawn = null;

  constructor(parent) {
    this.#parent = parent;
    new ResizeObserver(() => this.#drawn && this.draw(...this.#drawn, true)).observe(parent);
  }

  /** Draws a bar for each of `spans`; `label` says in one sentence what the chart shows. */
  draw(spans, label, isForced = false) {
    const isSame = JSON.stringify([spans, label]) === JSON.stringify(this.#drawn);
    this.#drawn = [spans, label];
    const width = this.#parent.clientWidth;
    if (width === 0 || (isSame && !isForced)) return;
    this.#parent.replaceChildren(createChart(spans, label, width));
  }
}

function createChart(spans, label, width) {
  const most = roundUp(Math.max(1, ...spans.map((span) => span.tokens)));
  const chart = svg("svg", {
    width,
    height: HEIGHT,
    viewBox: `0 0 ${width} ${HEIGHT}`,
    role: "img",
    "aria-label": label,
  });
  const bottom = HEIGHT - BOTTOM;
  const scale = (bottom - TOP) / most;
  for (const value of [0, most / 2, most])
    chart.append(...createGridLine(value, bottom - value * scale, width));
  const step = (width - LEFT) / spans.length;
  const every = Math.ceil(LABEL_WIDTH / step);
  spans.forEach((span, index) => {
    const x = LEFT + index * step;
    const height = span.tokens && Math.max(1, span.tokens * scale);
    const bar = svg("rect", {
      x: x + step * 0.15,
      y: bottom - height,
      width: step * 0.7,
      height,
      rx: 1.5,
      class: "column",
    });
    bar.append(svg("title", {}, `${span.title}: ${describeSpan(span)}`));
    chart.append(bar);
    if ((spans.length - 1 - index) % every === 0) {
      const anchor = index === spans.length - 1 ? "end" : "middle";
      const at = anchor === "end" ? width : x + step / 2;
      chart.append(svg("text", { x: at, y: HEIGHT - 6, "text-anchor": anchor }, span.label));
    }
  });
  return chart;
}

const describeSpan = ({ tokens, turns }) =>
  `${compactCount(tokens, "token")} in ${count(turns, "turn")}`;

function createGridLine(value, y, width) {
  const line = svg("line", { x1: LEFT, x2: width, y1: y, y2: y, class: "grid" });
  return [line, svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, abbreviated(value))];
}

/** Rounds up to 1, 2 or 5 times a power of ten, so that the axis has plain numbers. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((factor) => factor * power >= value) * power;
}

function svg(tag, attributes, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(text);
  return node;
}

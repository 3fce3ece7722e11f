// The view that searches the tools as an agent does.

import * as api from "./api.js";
import { byId, element, reconcile, setText } from "./dom.js";
import { count, revealed } from "./format.js";

const TYPING_PAUSE = 300;

export class SearchView {
  #query = byId("search-query");
  #status = byId("search-status");
  #timer;
  // The number of the newest search; answers of older ones are dropped.
  #newest = 0;

  constructor() {
    byId("search-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#search();
    });
    this.#query.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), TYPING_PAUSE);
    });
  }

  async #search() {
    clearTimeout(this.#timer);
    const query = this.#query.value.trim();
    const own = ++this.#newest;
    if (!query) return this.#show([], "");
    try {
      const { hits } = await api.search(query);
      const text = hits.length ? `${count(hits.length, "result")}, best first` : "No tool found.";
      if (own === this.#newest) this.#show(hits, text);
    } catch (error) {
      if (own === this.#newest)
        this.#show([], `The search failed: ${revealed(error.message)}`, true);
    }
  }

  #show(hits, text, isFailure = false) {
    setText(this.#status, text);
    this.#status.classList.toggle("bad", isFailure);
    const keyed = hits.map((hit, index) => ({ ...hit, key: `${index} ${JSON.stringify(hit)}` }));
    reconcile(byId("search-hits"), keyed, (hit) => hit.key, createHit);
  }
}

function createHit({ server, tool, description }) {
  const link = element("a", { href: `#servers/${encodeURIComponent(server)}` }, revealed(server));
  const muted = (words) => element("span", { class: "muted" }, words);
  const isServer = tool === null;
  const head = isServer
    ? element("p", {}, link, muted(" – its tools are known once it is loaded"))
    : element("p", {}, element("code", { class: "name" }, revealed(tool)), muted(" of "), link);
  const text = element("p", { class: "muted pre clamp" }, revealed(description));
  return { node: element("li", {}, head, text), update() {} };
}

// The newest calls, in memory.

import { getCalls } from "./api.js";

const MAX_CALLS = 1000;
const MAX_ANSWER = 500;

export class CallLog {
  /** The calls, newest first; each has an `id`, and a `text` for the filter. */
  calls = [];
  /** The number of calls that were ever fetched. */
  total = 0;
  #next = 0;

  async poll() {
    let answer;
    do {
      answer = await getCalls(this.#next);
      this.#next = answer.next;
      const added = answer.calls.map((call) => ({
        ...call,
        id: ++this.total,
        text: searchText(call),
      }));
      this.calls = [...added.reverse(), ...this.calls].slice(0, MAX_CALLS);
    } while (answer.calls.length >= MAX_ANSWER);
  }
}

function searchText({ server, method, name, client }) {
  return [server, method, name, client].filter(Boolean).join(" ").toLowerCase();
}

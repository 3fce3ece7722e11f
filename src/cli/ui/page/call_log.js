// The newest calls, in memory.

import { getCalls } from "./api.js";
import { Reader } from "./reader.js";

const MAX_CALLS = 1000;

export class CallLog {
  /** The calls, newest first; each has an `id`, and a `text` for the filter. */
  calls = [];
  /** The number of calls that were ever fetched. */
  total = 0;
  /** The reason that the last request failed, or `null`. */
  error = null;
  /** True once a request succeeded. */
  isKnown = false;
  #next = 0;
  #reader;

  /** `changed()` is called after each answer. */
  constructor(changed) {
    this.#reader = new Reader(
      (signal) => getCalls(this.#next, signal),
      (answer) => {
        this.#add(answer);
        changed();
      },
      (error) => {
        this.error = error;
        changed();
      },
    );
  }

  read() {
    this.#reader.read();
  }

  #add({ next, calls }) {
    this.error = null;
    this.isKnown = true;
    this.#next = next;
    const added = calls.map((call) => ({ ...call, id: ++this.total, text: searchText(call) }));
    this.calls = [...added.reverse(), ...this.calls].slice(0, MAX_CALLS);
  }
}

const searchText = ({ server, method, name, client }) =>
  [server, method, name, client].filter(Boolean).join(" ");

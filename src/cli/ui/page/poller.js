// Polls while the document is visible, and backs off while polls fail.

const INTERVAL = 1000;
const MAX_INTERVAL = 15_000;

export class Poller {
  #poll;
  #report;
  #timer;
  #running = null;
  #queued = null;
  #failures = 0;

  /**
   * `report(error)` is called after each poll, with `null` if it succeeded. If `poll` throws, the
   * next poll is later.
   */
  constructor(poll, report) {
    this.#poll = poll;
    this.#report = report;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.#timer);
      if (!document.hidden) this.now();
    });
  }

  /**
   * Polls at once, or after the poll that is under way, so that the answer is newer than this call.
   */
  now() {
    if (this.#queued) return this.#queued;
    if (!this.#running) return (this.#running = this.#once());
    return (this.#queued = this.#running.then(() => {
      this.#queued = null;
      return (this.#running = this.#once());
    }));
  }

  async #once() {
    clearTimeout(this.#timer);
    let error = null;
    try {
      await this.#poll();
      this.#failures = 0;
    } catch (cause) {
      error = cause;
      this.#failures += 1;
    }
    this.#running = null;
    if (!document.hidden) {
      this.#timer = setTimeout(
        () => this.now(),
        Math.min(INTERVAL * 2 ** this.#failures, MAX_INTERVAL),
      );
    }
    this.#report(error);
  }
}

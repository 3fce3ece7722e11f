// Reads one part of the state, such as the lines of standard error. The overview does not wait for
// parts, because some of them are slow.

export class Reader {
  #request;
  #show;
  #showError;
  #controller = null;
  #running = null;
  #shownKey = null;

  /** `request(signal)` returns the answer that `show(answer)` draws. */
  constructor(request, show, showError) {
    this.#request = request;
    this.#show = show;
    this.#showError = showError;
  }

  /** Drops the request under way: its answer is never shown. */
  stop() {
    this.#controller?.abort();
    this.#controller = this.#shownKey = null;
  }

  /** Sends a request, unless one is under way, and waits until its answer is shown. */
  read(key = null) {
    if (!this.#controller) this.#running = this.#once(key);
    return this.#running;
  }

  /** Reads unless the last answer that is shown belongs to the same key. */
  readIfChanged(key) {
    if (key !== this.#shownKey) this.read(key);
  }

  /** Drops the request under way and reads, so that the answer is newer than this call. */
  readAgain() {
    this.stop();
    return this.read();
  }

  async #once(key) {
    const controller = (this.#controller = new AbortController());
    let show;
    try {
      const answer = await this.#request(controller.signal);
      show = () => this.#show(answer);
    } catch (error) {
      show = () => this.#showError(error);
      key = null;
    }
    if (controller.signal.aborted) return;
    this.#controller = null;
    this.#shownKey = key;
    show();
  }
}

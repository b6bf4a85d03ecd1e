/** Calls that take effect in the order in which they are made, also where one of them waits for something. */

export class CallQueue {
  /** @type {{ act: () => void, ready: Promise<void> | null }[]} */
  #waiting = [];
  #onError;

  /** @param {(error: unknown) => void} onError told of what a call throws whose caller is gone */
  constructor(onError) {
    this.#onError = onError;
  }

  get isEmpty() {
    return !this.#waiting.length;
  }

  /** Now, or after what waits. @param {() => void} act */
  inOrder(act) {
    if (this.#waiting.length) this.defer(act);
    else act();
  }

  /** After what waits, and once `ready` settles, which never rejects. @param {() => void} act @param {Promise<void> | null} ready */
  defer(act, ready = null) {
    this.#waiting.push({ act, ready });
    if (this.#waiting.length === 1) void this.#drain();
  }

  async #drain() {
    for (let at = 0; at < this.#waiting.length; at++) {
      const { act, ready } = this.#waiting[at];
      if (ready) await ready;
      try {
        act();
      } catch (error) {
        this.#onError(error);
      }
    }
    this.#waiting.length = 0;
  }
}

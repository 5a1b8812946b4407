// Translation while somebody types: one request at a time, the newest. Owns when one is sent, that the
// one before is cancelled, and when it is tried again by itself. It knows nothing of the page.

import { passes } from "./waiting.js";

const PAUSE_MS = 280;
const SLOW_MS = 2500;
const MAX_WAIT_SECONDS = 30;
const MAX_TRIES = 5;

export class Live {
  /**
   * `send(signal)` makes a request and returns a promise; null if there is nothing to ask.
   * The others are called as it goes: `onStart()`, `onSlow()`, `onResult(reply, ms)`,
   * `onError(error, secondsUntilNextTry)`, `onIdle()`.
   */
  constructor({ send, onStart, onSlow, onResult, onError, onIdle }) {
    Object.assign(this, { send, onStart, onSlow, onResult, onError, onIdle });
    this.controller = null;
    this.timers = [];
  }

  /** Ask when nothing has been typed for a moment, or for so long; what runs is cancelled now. */
  soon(ms = PAUSE_MS) {
    this.cancel();
    if (ms < Infinity) this.#later(ms, () => this.#run(0));
  }

  /** Ask now. */
  now() {
    this.cancel();
    this.#run(0);
  }

  /** Give up what runs and what waits. */
  cancel() {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers = [];
    this.controller?.abort();
    this.controller = null;
    this.onIdle();
  }

  async #run(tries) {
    const controller = new AbortController();
    this.controller = controller;
    const answer = this.send(controller.signal);
    if (answer === null) {
      this.cancel();
      return;
    }
    const started = performance.now();
    const slow = this.#later(SLOW_MS, () => this.onSlow());
    this.onStart();
    try {
      const reply = await answer;
      if (this.controller === controller) this.#end(slow, () => this.onResult(reply, performance.now() - started));
    } catch (error) {
      if (this.controller === controller && error.name !== "AbortError") {
        this.#end(slow, () => this.#failed(error, tries));
      }
    }
  }

  #end(slow, then) {
    clearTimeout(slow);
    this.controller = null;
    this.onIdle();
    then();
  }

  /** What passes by itself is tried again, when the server says or a little later each time. */
  #failed(error, tries) {
    const seconds = error.retrySeconds ?? 2 ** tries * 2;
    const isSoon = passes(error) && tries < MAX_TRIES && seconds <= MAX_WAIT_SECONDS;
    this.onError(error, isSoon ? seconds : null);
    if (isSoon) this.#later(seconds * 1000, () => this.#run(tries + 1));
  }

  #later(ms, action) {
    const timer = setTimeout(action, ms);
    this.timers.push(timer);
    return timer;
  }
}

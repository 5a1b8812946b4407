// Waiting for a server. Owns which failures pass by themselves, the pauses until it is asked again,
// longer each time and never shorter than it says, and how many ask at once. It knows nothing of what is asked.

const FIRST_MS = 700;
const MOST_MS = 5000;
const GROWTH = 1.5;
const MOST_RETRY_MS = 60_000;

/** Whether a failure is of a kind that passes by itself. */
export const passes = (error) => ["busy", "unavailable", "offline"].includes(error.kind);

/** The same of what may be done twice, as a look may: a proxy that gave up waiting will wait again. */
export const passesForLooks = (error) => passes(error) || error.kind === "slow";

/** Pauses between looks at something, each longer than the last one up to a bound. */
export class Pauses {
  /** `signal` ends a pause with its AbortError; null: nothing does. */
  constructor(signal = null) {
    this.signal = signal;
    this.ms = FIRST_MS;
  }

  /** Wait, for as many seconds as the server says if that is longer. */
  async next(retrySeconds = null) {
    const asked = Math.min((retrySeconds ?? 0) * 1000, MOST_RETRY_MS);
    const ms = Math.max(this.ms, asked);
    this.ms = Math.min(this.ms * GROWTH, MOST_MS);
    await pause(ms, this.signal);
  }
}

/**
 * The result of `action()`, which is done again while `mayPass(error)` of what it throws, `maxTries` times
 * at most; `onWait(error)` is called before each pause.
 */
export async function persist(action, { signal = null, mayPass = passes, maxTries = Infinity, onWait = () => {} } = {}) {
  const pauses = new Pauses(signal);
  for (let tries = 1; ; tries += 1) {
    try {
      return await action();
    } catch (error) {
      if (!mayPass(error) || tries >= maxTries) throw error;
      onWait(error);
      await pauses.next(error.retrySeconds);
    }
  }
}

/** Places for so many at once; who comes later waits, in order. */
export class Places {
  constructor(num) {
    this.numFree = num;
    this.waiting = [];
  }

  /** The result of `action()`, done as soon as there is a place. */
  async hold(action) {
    if (this.numFree > 0) this.numFree -= 1;
    else await new Promise((resolve) => this.waiting.push(resolve));
    try {
      return await action();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.numFree += 1;
    }
  }
}

async function pause(ms, signal) {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

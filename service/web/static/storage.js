// What this browser remembers: values in localStorage, under names of their own. Owns that a browser
// without storage, or with a full or strange one, costs memory and nothing else, and that a value is
// seen as another tab of the page left it.

const PREFIX = "dragoman.";

/** The value that was kept, or `fallback`; `isSound` tells whether what is there can be used. */
export function recall(name, fallback, isSound = () => true) {
  try {
    const raw = localStorage.getItem(PREFIX + name);
    const value = raw === null ? fallback : JSON.parse(raw);
    return isSound(value) ? value : fallback;
  } catch {
    return fallback;
  }
}

/** Keep a value; whether that was possible. */
export function keep(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** Keep no value under this name. */
export function forget(name) {
  try {
    localStorage.removeItem(PREFIX + name);
  } catch {
    // There was none.
  }
}

/** A value that several tabs read and write. Where it cannot be kept, it is this page's alone. */
export class Shared {
  /** `onOther()` is called when another tab has changed it. */
  constructor(name, fallback, isSound, onOther) {
    Object.assign(this, { name, fallback, isSound, value: fallback, isKept: true });
    addEventListener("storage", (event) => {
      if (event.key !== PREFIX + name && event.key !== null) return; // null: all was cleared
      this.isKept = true;
      onOther();
    });
  }

  /** The value as it is now, whichever tab it is from. */
  read() {
    if (this.isKept) this.value = recall(this.name, this.fallback, this.isSound);
    return this.value;
  }

  write(value) {
    this.value = value;
    this.isKept = keep(this.name, value);
  }

  /** Keep none. */
  clear() {
    this.value = this.fallback;
    forget(this.name);
  }
}

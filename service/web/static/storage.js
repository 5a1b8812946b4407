// What this browser remembers: values in localStorage, under names of their own. Owns that a browser
// without storage, or with a full or strange one, costs memory and nothing else.

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

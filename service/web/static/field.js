// The text field. Owns what changes its text: typing, where a word that an input method still composes is no
// text to translate yet, and a text that is put into it, which can be undone like a typed one.

/** Milliseconds after which a word that is still composed is taken for one: never, but on Android, whose
 * keyboards compose every word. */
export const COMPOSED_MS = /android/i.test(navigator.userAgent) ? 1000 : Infinity;

// Chromium takes some milliseconds for every line that it can undo.
const MAX_LINES_TO_UNDO = 50;

export class Field {
  /** `onText(isComposing)` is called when the text has changed, and when a word of it has been composed. */
  constructor({ element, onText }) {
    Object.assign(this, { element, onText });
    element.addEventListener("input", (event) => onText(event.isComposing));
    element.addEventListener("compositionend", () => onText(false));
  }

  /** Put a text in the place of the field's own; the browser can undo it, unless it has very many lines. */
  put(text) {
    const value = text.replace(/\r\n?/g, "\n");
    if (value.split("\n").length <= MAX_LINES_TO_UNDO) this.#type(value);
    if (this.element.value !== value) this.element.value = value;
    this.onText(false);
  }

  /** As if it were typed, which only the element with the focus takes: none behind a dialog. */
  #type(value) {
    const focused = document.activeElement;
    this.element.focus({ preventScroll: true });
    if (document.activeElement !== this.element) return;
    this.element.select();
    document.execCommand(value ? "insertText" : "delete", false, value);
    focused.focus({ preventScroll: true });
  }
}

// The history of translations: in this browser alone, bounded, off by a switch, one for all tabs. Owns
// what is kept, and the dialog that shows it.

import { redraw } from "./redraw.js";
import { Shared } from "./storage.js";
import { inLanguage, t } from "./strings.js";

const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 5000;
const SETTLED_MS = 1500;

const isEntry = (one) => ["source", "target", "text", "translation"].every((name) => typeof one?.[name] === "string");
const isSame = (one, other) => one.text === other.text && one.target === other.target;
const isSound = (value) => Array.isArray(value) && value.every(isEntry);

export class History {
  /** `elements` are of the dialog; `onChosen(entry)` shows an entry again. */
  constructor({ elements, onChosen }) {
    Object.assign(this, { ...elements, onChosen, waiting: null });
    this.entries = new Shared("history", [], isSound, () => this.#changedElsewhere());
    this.isOn = new Shared("keep_history", true, (value) => typeof value === "boolean", () => this.draw());
    this.toggle.checked = this.isOn.read();
    this.toggle.addEventListener("change", () => {
      this.isOn.write(this.toggle.checked);
      if (!this.toggle.checked) this.empty();
    });
    this.clear.addEventListener("click", () => this.empty());
  }

  /** Keep a translation when it has stood for a moment, and call `onKept()`; the one that waits is given up. */
  soon(entry, onKept) {
    this.giveUp();
    const settled = () => {
      this.settle();
      onKept();
    };
    this.waiting = { entry, timer: setTimeout(settled, SETTLED_MS) };
  }

  /** Keep what waits now. */
  settle() {
    if (this.waiting) this.#add(this.waiting.entry);
    this.giveUp();
    this.draw();
  }

  /** Keep nothing of what waits. */
  giveUp() {
    clearTimeout(this.waiting?.timer);
    this.waiting = null;
  }

  /** Another tab has other entries now; one that cleared them wants none of what was written before, either. */
  #changedElsewhere() {
    if (this.entries.read().length === 0) this.giveUp();
    this.draw();
  }

  /** Keep a translation; one that only goes on from the last entry takes its place. */
  #add(entry) {
    if (!this.isOn.read() || !entry.text.trim() || entry.text.length > MAX_CHARACTERS) return;
    const entries = this.entries.read();
    const last = entries[0];
    const goesOn = last && last.target === entry.target && entry.text.startsWith(last.text);
    const others = entries.filter((one) => !isSame(one, entry));
    this.entries.write([entry, ...(goesOn ? others.filter((one) => one !== last) : others)].slice(0, MAX_ENTRIES));
  }

  empty() {
    this.giveUp();
    this.entries.clear();
    this.draw();
  }

  /** Show the entries in the dialog, and the switch. */
  draw() {
    const entries = this.entries.read();
    redraw(this.list, entries.map((entry) => this.#row(entry)));
    this.none.hidden = entries.length > 0;
    this.clear.disabled = entries.length === 0;
    this.toggle.checked = this.isOn.read();
  }

  #row(entry) {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "entry";
    button.append(line(entry.text, "", entry.source), line(entry.translation, "quiet", entry.target));
    button.addEventListener("click", () => this.onChosen(entry));
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "×";
    remove.setAttribute("aria-label", t("remove_entry", { text: entry.text.slice(0, 40) }));
    remove.addEventListener("click", () => {
      this.entries.write(this.entries.read().filter((one) => !isSame(one, entry)));
      this.draw();
      this.list.querySelector("button")?.focus();
    });
    row.append(button, remove);
    return row;
  }
}

function line(text, className, tag) {
  const span = document.createElement("span");
  span.className = className;
  span.dir = "auto";
  span.textContent = text;
  inLanguage(span, tag);
  return span;
}

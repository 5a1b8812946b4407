// The history of translations: in this browser alone, bounded, off by a switch. Owns what is kept, and
// the dialog that shows it.

import { forget, keep, recall } from "./storage.js";
import { t } from "./strings.js";

const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 5000;

const isEntry = (one) => ["source", "target", "text", "translation"].every((name) => typeof one?.[name] === "string");
const isSound = (value) => Array.isArray(value) && value.every(isEntry);

export class History {
  /** `elements` are of the dialog; `onChosen(entry)` shows an entry again. */
  constructor({ elements, onChosen }) {
    Object.assign(this, { ...elements, onChosen });
    this.entries = recall("history", [], isSound);
    this.toggle.checked = recall("keep_history", true, (value) => typeof value === "boolean");
    this.toggle.addEventListener("change", () => {
      keep("keep_history", this.toggle.checked);
      if (!this.toggle.checked) this.empty();
    });
    this.clear.addEventListener("click", () => this.empty());
  }

  /** Keep a translation; one that only goes on from the last entry takes its place. */
  add(entry) {
    if (!this.toggle.checked || !entry.text.trim() || entry.text.length > MAX_CHARACTERS) return;
    const last = this.entries[0];
    const goesOn = last && last.target === entry.target && entry.text.startsWith(last.text);
    const others = this.entries.filter((one) => one.text !== entry.text || one.target !== entry.target);
    this.entries = [entry, ...(goesOn ? others.filter((one) => one !== last) : others)].slice(0, MAX_ENTRIES);
    keep("history", this.entries);
  }

  empty() {
    this.entries = [];
    forget("history");
    this.draw();
  }

  /** Show the entries in the dialog. */
  draw() {
    this.list.replaceChildren(...this.entries.map((entry) => this.#row(entry)));
    this.none.hidden = this.entries.length > 0;
    this.clear.disabled = this.entries.length === 0;
  }

  #row(entry) {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "entry";
    button.append(line(entry.text, ""), line(entry.translation, "quiet"));
    button.addEventListener("click", () => this.onChosen(entry));
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "×";
    remove.setAttribute("aria-label", t("remove_entry", { text: entry.text.slice(0, 40) }));
    remove.addEventListener("click", () => {
      this.entries = this.entries.filter((one) => one !== entry);
      keep("history", this.entries);
      this.draw();
      this.list.querySelector("button")?.focus();
    });
    row.append(button, remove);
    return row;
  }
}

function line(text, className) {
  const span = document.createElement("span");
  span.className = className;
  span.dir = "auto";
  span.textContent = text;
  return span;
}

// The glossary: words that are always translated in one way, a list for every pair of languages, kept
// in this browser. Owns the list and its editor; the server does the rest.

import { keep, recall } from "./storage.js";
import { t } from "./strings.js";

const MAX_TERMS = 200;
const isTerm = (one) => typeof one?.source === "string" && typeof one?.target === "string";
const isSound = (value) => typeof value === "object" && value !== null
  && Object.values(value).every((terms) => Array.isArray(terms) && terms.every(isTerm));

export class Glossary {
  /** `elements` are of the editor; `onChange()` is called when a term has changed. */
  constructor({ elements, onChange }) {
    Object.assign(this, { ...elements, onChange, pair: "" });
    this.every = recall("glossary", {}, isSound);
    this.add.addEventListener("click", () => this.#addTerm());
  }

  /** The terms of a pair, as the API takes them. */
  terms(source, target) {
    const terms = this.every[`${source}>${target}`] ?? [];
    return terms
      .filter((term) => term.source.trim() && term.target.trim())
      .map((term) => ({ source: term.source.trim(), target: term.target.trim(), case_sensitive: Boolean(term.case_sensitive) }));
  }

  /** Edit the terms of a pair. */
  draw(source, target, names) {
    this.pair = `${source}>${target}`;
    this.pairName.textContent = t("pair", names);
    this.every[this.pair] ??= [];
    if (this.every[this.pair].length === 0) this.#push();
    this.list.replaceChildren(...this.every[this.pair].map((term) => this.#row(term)));
    this.add.disabled = this.every[this.pair].length >= MAX_TERMS;
  }

  #push() {
    this.every[this.pair].push({ source: "", target: "", case_sensitive: false });
  }

  #addTerm() {
    this.#push();
    const term = this.every[this.pair].at(-1);
    const row = this.#row(term);
    this.list.append(row);
    this.add.disabled = this.every[this.pair].length >= MAX_TERMS;
    row.querySelector("input").focus();
  }

  #changed() {
    const full = Object.entries(this.every).map(([pair, terms]) => [pair, terms.filter((one) => one.source || one.target)]);
    keep("glossary", Object.fromEntries(full.filter(([, terms]) => terms.length)));
    this.onChange();
  }

  #row(term) {
    const row = document.createElement("div");
    row.className = "term";
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "×";
    remove.setAttribute("aria-label", t("remove_term"));
    remove.addEventListener("click", () => {
      this.every[this.pair] = this.every[this.pair].filter((one) => one !== term);
      row.remove();
      this.add.disabled = false;
      this.add.focus();
      this.#changed();
    });
    row.append(this.#field(term, "source"), this.#field(term, "target"), this.#case(term), remove);
    return row;
  }

  #field(term, name) {
    const input = document.createElement("input");
    input.type = "text";
    input.maxLength = 200;
    input.value = term[name];
    input.setAttribute("aria-label", t(`term_${name}`));
    input.placeholder = t(`term_${name}_short`); // a phone has room for no more
    input.addEventListener("input", () => {
      term[name] = input.value;
      this.#changed();
    });
    return input;
  }

  #case(term) {
    const label = document.createElement("label");
    label.className = "switch";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = Boolean(term.case_sensitive);
    box.addEventListener("change", () => {
      term.case_sensitive = box.checked;
      this.#changed();
    });
    label.append(box, t("term_case"));
    return label;
  }
}

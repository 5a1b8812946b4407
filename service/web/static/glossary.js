// The glossary: words that are always translated in one way, a list for every pair of languages, kept
// in this browser. What is given while no source is known counts for every source. Owns the lists and
// their editor; the server does the rest.

import { keep, recall } from "./storage.js";
import { t } from "./strings.js";

const MAX_TERMS = 200;
const ANY = "auto";
const isTerm = (one) => typeof one?.source === "string" && typeof one?.target === "string";
const isSound = (value) => typeof value === "object" && value !== null
  && Object.values(value).every((terms) => Array.isArray(terms) && terms.every(isTerm));

export class Glossary {
  /** `elements` are of the editor; `onChange()` is called when a term has changed. */
  constructor({ elements, onChange }) {
    Object.assign(this, { ...elements, onChange, pairs: [] });
    this.every = recall("glossary", {}, isSound);
    this.add.addEventListener("click", () => this.#addTerm());
  }

  /** The terms of a pair, as the API takes them: of equal words the last one counts, the pair's own. */
  terms(source, target) {
    return pairsOf(source, target)
      .reverse()
      .flatMap((pair) => this.every[pair] ?? [])
      .filter((term) => term.source.trim() && term.target.trim())
      .map((term) => ({ source: term.source.trim(), target: term.target.trim(), case_sensitive: Boolean(term.case_sensitive) }));
  }

  /** Edit the terms of a pair, and those of every source. */
  draw(source, target, names) {
    this.pairs = pairsOf(source, target);
    this.pairName.textContent = t("pair", names);
    for (const pair of this.pairs) this.every[pair] ??= [];
    if (this.#edited().length === 0) this.#push();
    this.list.replaceChildren(...this.#edited().map((term) => this.#row(term)));
    this.#bound();
  }

  #edited() {
    return this.pairs.flatMap((pair) => this.every[pair]);
  }

  /** A new term, of the pair's own. */
  #push() {
    const term = { source: "", target: "", case_sensitive: false };
    this.every[this.pairs[0]].push(term);
    return term;
  }

  #bound() {
    this.add.disabled = this.every[this.pairs[0]].length >= MAX_TERMS;
  }

  #addTerm() {
    const row = this.#row(this.#push());
    this.list.append(row);
    this.#bound();
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
      for (const pair of this.pairs) this.every[pair] = this.every[pair].filter((one) => one !== term);
      row.remove();
      this.#bound();
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

/** The lists that count for a pair, its own first. */
const pairsOf = (source, target) => [...new Set([`${source}>${target}`, `${ANY}>${target}`])];

// The glossary: words that are always translated in one way, a list for every pair of languages, kept
// in this browser, for all tabs. What is given while no source is known counts for every source. Owns the
// lists, that terms of several tabs come together, and the editor; the server does the rest.

import { Shared } from "./storage.js";
import { inLanguage, t } from "./strings.js";

const MAX_TERMS = 200;
const ANY = "auto";
const KEYS = ["source", "target", "case_sensitive"];
// What breaks a line for the server, which takes terms of one line; a cell of a spreadsheet comes with a tab.
const LINE_BREAKS = /[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+/g;
const oneLine = (text) => text.replace(LINE_BREAKS, " ").trim();
const isTerm = (one) => typeof one?.source === "string" && typeof one?.target === "string";
const isSound = (value) => typeof value === "object" && value !== null
  && Object.values(value).every((terms) => Array.isArray(terms) && terms.every(isTerm));

export class Glossary {
  /** `elements` are of the editor; `onChange()` is called when a term has changed here, `onOther()` when one has in another tab, once this one is seen. */
  constructor({ elements, onChange, onOther }) {
    Object.assign(this, { ...elements, onChange, pairs: [], tags: {}, rows: new Map(), every: {}, seen: {} });
    this.kept = new Shared("glossary", {}, isSound, () => {
      this.#read();
      if (this.pairs.length) this.#drawRows(); // else the editor was never opened
      if (document.hidden) document.addEventListener("visibilitychange", onOther, { once: true });
      else onOther();
    });
    this.#read();
    this.add.addEventListener("click", () => this.#addTerm());
  }

  /** The terms of a pair, as the API takes them: of equal words the last one counts, the pair's own. */
  terms(source, target) {
    return pairsOf(source, target)
      .reverse()
      .flatMap((pair) => this.every[pair] ?? [])
      .map((term) => ({ source: oneLine(term.source), target: oneLine(term.target), case_sensitive: Boolean(term.case_sensitive) }))
      .filter((term) => term.source && term.target);
  }

  /** Edit the terms of a pair, and those of every source. */
  draw(source, target, names) {
    this.#read();
    this.pairs = pairsOf(source, target);
    this.tags = { source, target };
    this.pairName.textContent = t("pair", names);
    for (const pair of this.pairs) this.every[pair] ??= [];
    if (this.#edited().length === 0) this.#push();
    this.rows.clear();
    this.list.replaceChildren();
    this.#drawRows();
  }

  #edited() {
    return this.pairs.flatMap((pair) => this.every[pair]);
  }

  /** A row for each term; one that is there stays, and what is typed into it. */
  #drawRows() {
    const terms = this.#edited();
    for (const [term, row] of this.rows) {
      if (terms.includes(term)) continue;
      row.remove();
      this.rows.delete(term);
    }
    for (const term of terms) {
      if (!this.rows.has(term)) this.list.append(this.#row(term));
    }
    this.#bound();
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
    const term = this.#push();
    this.#drawRows();
    this.rows.get(term).querySelector("input").focus();
  }

  #changed() {
    this.#read();
    const full = Object.entries(this.every).map(([pair, terms]) => [pair, terms.filter((one) => one.source || one.target)]);
    this.seen = structuredClone(Object.fromEntries(full.filter(([, terms]) => terms.length)));
    this.kept.write(this.seen);
    this.#drawRows();
    this.onChange();
  }

  /** Take over what other tabs have changed since it was read or written here. */
  #read() {
    const theirs = this.kept.read();
    for (const pair of new Set([...Object.keys(theirs), ...Object.keys(this.every)])) {
      this.every[pair] = merged(this.seen[pair] ?? [], this.every[pair] ?? [], structuredClone(theirs[pair] ?? []));
    }
    this.seen = theirs;
  }

  #row(term) {
    const row = document.createElement("div");
    this.rows.set(term, row);
    row.className = "term";
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "×";
    remove.setAttribute("aria-label", t("remove_term"));
    remove.addEventListener("click", () => {
      for (const pair of this.pairs) this.every[pair] = this.every[pair].filter((one) => one !== term);
      this.#changed();
      this.add.focus();
    });
    row.append(this.#field(term, "source"), this.#field(term, "target"), this.#case(term), remove);
    return row;
  }

  #field(term, name) {
    const input = document.createElement("input");
    input.type = "text";
    input.dir = "auto";
    inLanguage(input, this.tags[name]);
    input.maxLength = 200;
    input.value = term[name];
    input.setAttribute("aria-label", t(`term_${name}`));
    input.placeholder = t(`term_${name}_short`); // a phone has room for no more
    const take = () => {
      term[name] = input.value;
      this.#changed();
    };
    input.addEventListener("input", (event) => event.isComposing || take());
    input.addEventListener("compositionend", take);
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

/**
 * The terms of a list that was changed here and elsewhere since it was as `before`: what is new here or
 * there, and what was before and neither has taken away. A term that was changed is another one.
 */
function merged(before, own, theirs) {
  const kept = own.filter((one) => !has(before, one) || has(theirs, one));
  return [...kept, ...theirs.filter((one) => !has(before, one) && !has(own, one))];
}

const has = (terms, term) => terms.some((one) => KEYS.every((name) => (one[name] || "") === (term[name] || "")));

/** The lists that count for a pair, its own first. */
const pairsOf = (source, target) => [...new Set([`${source}>${target}`, `${ANY}>${target}`])];

// Two tables of words of a translation by words of its text. The word map: from which word each one
// comes, one square a token, as the API's `alignment` has it; the shade is the network's probability
// of the word. The heat map: how much each one attended to every word, as `attention` has it.

import { inLanguage, number, t } from "./strings.js";

const MAX_WORDS = 60;
const FAINT = 0.02;
const LEVELS = [0.2, 0.4, 0.6, 0.8];

/** A table; `square` makes a cell of a word and the index of a source word, or null for none. */
export class WordTable {
  constructor({ details, scroll, choice, select, square, none = "" }) {
    Object.assign(this, { details, scroll, choice, select, square, none, segments: [], source: null, target: null });
    details.addEventListener("toggle", () => this.#draw());
    select.addEventListener("change", () => this.#draw());
  }

  /**
   * Show segments, as of `words.placed`, from one language into another; those without words have no map. Which one
   * is chosen stays if the text does.
   */
  show(segments, { source = null, target = null } = {}) {
    const chosen = this.select.value;
    const before = this.segments;
    Object.assign(this, { source, target });
    this.segments = segments.filter((one) => one.targetWords.length && one.sourceWords.length);
    this.details.hidden = this.segments.length === 0;
    this.choice.hidden = this.segments.length < 2;
    inLanguage(this.select, source);
    this.select.replaceChildren(
      ...this.segments.map((one, index) => {
        const option = document.createElement("option");
        option.value = String(index);
        option.textContent = `${index + 1}. ${one.segment.source.slice(0, 60)}`;
        return option;
      }),
    );
    if (isSameText(this.segments, before)) this.select.value = chosen;
    this.#draw();
  }

  #draw() {
    const one = this.segments[Number(this.select.value) || 0];
    this.scroll.replaceChildren();
    if (!this.details.open || !one) return;
    if (!one.targetWords.some((word) => one.sourceWords.some((_, index) => this.square(word, index)))) {
      this.scroll.append(cell("p", this.none && t(this.none)));
      return;
    }
    const sourceAt = one.source[0];
    const targetAt = one.target[0];
    const sources = one.sourceWords.slice(0, MAX_WORDS);
    const cut = (text, word, start) => text.slice(word.start - start, word.end - start);
    const head = row([cell("td", ""), ...sources.map((word) => headed(cut(one.segment.source, word, sourceAt)))]);
    inLanguage(head, this.source);
    const rows = one.targetWords.slice(0, MAX_WORDS).map((word) => {
      const name = cell("th", cut(one.segment.text, word, targetAt));
      name.scope = "row";
      inLanguage(name, this.target);
      return row([name, ...sources.map((_, index) => this.square(word, index) ?? cell("td", ""))]);
    });
    const table = document.createElement("table");
    table.className = "map";
    const [thead, tbody] = [document.createElement("thead"), document.createElement("tbody")];
    thead.append(head);
    tbody.append(...rows);
    table.append(thead, tbody);
    this.scroll.append(table);
  }
}

const isSameText = (segments, others) =>
  segments.length === others.length && segments.every((one, index) => one.segment.source === others[index].segment.source);

/** Of the word map. */
export function linkSquare(word, index) {
  return word.sources.includes(index) ? shaded(word.probability ?? 1, "sure") : null;
}

/** Of the heat map; what rounds to nothing is left empty. */
export function attentionSquare(word, index) {
  const weight = word.weights?.[index] ?? 0;
  return weight < FAINT ? null : shaded(weight, "attends");
}

/** A cell whose shade is a share of 1, which is also its text. */
function shaded(share, key) {
  const made = cell("td", "");
  made.className = `level-${1 + LEVELS.filter((level) => share > level).length}`;
  const said = cell("span", t(key, { percent: number(Math.round(share * 100)) }));
  said.className = "hidden-text";
  made.title = said.textContent;
  made.append(said);
  return made;
}

function headed(text) {
  const made = document.createElement("th");
  made.scope = "col";
  made.append(cell("span", text));
  return made;
}

function row(cells) {
  const made = document.createElement("tr");
  made.append(...cells);
  return made;
}

function cell(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

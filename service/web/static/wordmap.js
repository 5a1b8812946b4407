// The word map: which word of the text each word of the translation comes from, as a table. The API
// tells one source token for every target token, the one that had most attention, so there is one
// square a token; the shade is the network's probability of the word.

import { number, t } from "./strings.js";

const MAX_WORDS = 60;
const LEVELS = [0.2, 0.4, 0.6, 0.8];

export class WordMap {
  constructor({ details, scroll, choice, select }) {
    Object.assign(this, { details, scroll, choice, select, segments: [] });
    details.addEventListener("toggle", () => this.#draw());
    select.addEventListener("change", () => this.#draw());
  }

  /** Show segments, as of `words.placed`; those without words have no map. */
  show(segments) {
    this.segments = segments.filter((one) => one.targetWords.length && one.sourceWords.length);
    this.details.hidden = this.segments.length === 0;
    this.choice.hidden = this.segments.length < 2;
    this.select.replaceChildren(
      ...this.segments.map((one, index) => {
        const option = document.createElement("option");
        option.value = String(index);
        option.textContent = `${index + 1}. ${one.segment.source.slice(0, 60)}`;
        return option;
      }),
    );
    this.#draw();
  }

  #draw() {
    const one = this.segments[Number(this.select.value) || 0];
    this.scroll.replaceChildren();
    if (!this.details.open || !one) return;
    const sourceAt = one.source[0];
    const targetAt = one.target[0];
    const sources = one.sourceWords.slice(0, MAX_WORDS);
    const cut = (text, word, start) => text.slice(word.start - start, word.end - start);
    const head = row([cell("td", ""), ...sources.map((word) => headed(cut(one.segment.source, word, sourceAt)))]);
    const rows = one.targetWords.slice(0, MAX_WORDS).map((word) => {
      const name = cell("th", cut(one.segment.text, word, targetAt));
      name.scope = "row";
      return row([name, ...sources.map((_, index) => square(word, index))]);
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

function square(word, index) {
  if (!word.sources.includes(index)) return cell("td", "");
  const probability = word.probability ?? 1;
  const made = cell("td", "");
  made.className = `level-${1 + LEVELS.filter((level) => probability > level).length}`;
  const said = cell("span", t("sure", { percent: number(Math.round(probability * 100)) }));
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

// The two panes: the translation as words that can be pointed at, the mirror behind the field, and
// the marks on words that belong together. Text becomes text nodes, never markup.

import { t } from "./strings.js";
import { isRightToLeft, placed } from "./words.js";

const LONG = 600;
const MAX_WORDS = 3000;
const MAX_MIRRORED = 20_000; // to lay out more behind the field, at every key, takes a browser too long

export class Panes {
  constructor({ source, mirror, field, output, announce }) {
    Object.assign(this, { source, mirror, field, output, announce });
    this.segments = [];
    this.current = null;
    this.text = "";
    source.addEventListener("pointermove", (event) => this.#pointed(event));
    source.addEventListener("pointerleave", () => this.#mark(null));
    source.addEventListener("keyup", () => this.#atCaret());
    source.addEventListener("click", () => this.#atCaret());
    output.addEventListener("pointerover", (event) => this.#over(event));
    output.addEventListener("pointerleave", () => this.#mark(null));
    output.addEventListener("keydown", (event) => this.#walk(event));
    output.addEventListener("blur", () => this.#mark(null));
    this.typed();
  }

  /** The field's text has changed: what was known of its words is not true any more. */
  typed() {
    this.#forget();
    this.#reflect(`${this.source.value}\n`);
    this.field.classList.toggle("is-small", this.source.value.length > LONG);
  }

  /** Show a translation of the field's text, by its reply of `/v1/translate`. */
  show(translation) {
    this.#forget();
    this.text = translation.text;
    this.segments = placed(this.source.value, translation);
    const numWords = this.segments.reduce((sum, one) => sum + one.targetWords.length + one.sourceWords.length, 0);
    if (numWords > MAX_WORDS || !this.#isMirrored) this.segments = this.segments.map((one) => ({ ...one, sourceWords: [], targetWords: [] }));
    this.#draw();
  }

  /** Show a text without anything known of its words. */
  showPlain(text) {
    this.#forget();
    this.text = text;
    this.segments = [];
    this.#reflect(`${this.source.value}\n`);
    this.output.replaceChildren(text);
    this.output.classList.toggle("is-small", text.length > LONG);
  }

  get #isMirrored() {
    return this.source.value.length <= MAX_MIRRORED;
  }

  /** Put this behind the field, unless there is too much text in it: then the field scrolls by itself. */
  #reflect(content) {
    this.field.classList.toggle("has-no-mirror", !this.#isMirrored);
    this.mirror.replaceChildren(this.#isMirrored ? content : "");
  }

  #forget() {
    this.current = null;
    this.words = [];
    this.sourceElements = [];
  }

  #draw() {
    const target = document.createDocumentFragment();
    const source = document.createDocumentFragment();
    let targetDone = 0;
    let sourceDone = 0;
    for (const one of this.segments) {
      target.append(this.text.slice(targetDone, one.target[0]));
      source.append(this.source.value.slice(sourceDone, one.source[0]));
      const ownSources = one.sourceWords.map((word) => ({ ...word, element: null, targets: [] }));
      const segment = element("span", "segment");
      segment.classList.toggle("has-flag", (one.segment.quality?.failed ?? []).length > 0);
      this.#fill(segment, this.text, one.target, one.targetWords, (word, span) => {
        const whole = { ...word, element: span, sources: word.sources.map((index) => ownSources[index]) };
        for (const other of whole.sources) other.targets.push(whole);
        this.words.push(whole);
      });
      this.#fill(source, this.source.value, one.source, one.sourceWords, (word, span) => {
        const whole = ownSources[one.sourceWords.indexOf(word)];
        whole.element = span;
        this.sourceElements.push(whole);
      });
      target.append(segment);
      targetDone = one.target[1];
      sourceDone = one.source[1];
    }
    target.append(this.text.slice(targetDone));
    source.append(`${this.source.value.slice(sourceDone)}\n`);
    this.output.replaceChildren(target);
    this.#reflect(source);
    this.output.classList.toggle("is-small", this.text.length > LONG);
  }

  /** Put a stretch of a text into an element, its words as spans. */
  #fill(parent, text, [start, end], words, onWord) {
    let done = start;
    for (const word of words) {
      parent.append(text.slice(done, word.start));
      const span = element("span", "word");
      span.textContent = text.slice(word.start, word.end);
      parent.append(span);
      onWord(word, span);
      done = Math.max(done, word.end);
    }
    parent.append(text.slice(done, end));
  }

  #mark(words) {
    for (const marked of [...this.output.querySelectorAll(".is-marked"), ...this.mirror.querySelectorAll(".is-marked")]) {
      marked.classList.remove("is-marked");
    }
    for (const word of words ?? []) word?.element?.classList.add("is-marked");
  }

  #over(event) {
    const word = this.words.find((one) => one.element === event.target);
    this.#mark(word ? [word, ...word.sources] : null);
  }

  /** The field lies over its mirror: the word under the pointer is found by its place. */
  #pointed(event) {
    const word = this.sourceElements.find((one) =>
      [...(one.element?.getClientRects() ?? [])].some(
        (box) => event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom,
      ),
    );
    this.#mark(word ? [word, ...word.targets] : null);
  }

  #atCaret() {
    const place = this.source.selectionStart;
    if (place !== this.source.selectionEnd) return;
    const word = this.sourceElements.find((one) => one.start <= place && place <= one.end);
    this.#mark(word ? [word, ...word.targets] : null);
  }

  /** Arrow keys go from word to word of the translation, and say where each comes from. */
  #walk(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key === "Escape") this.#mark((this.current = null));
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey || !this.words.length) return;
    event.preventDefault();
    const isAcross = event.key === "ArrowRight" || event.key === "ArrowLeft";
    const isTurned = isAcross && isRightToLeft(this.text, this.words[this.current ?? 0].start);
    const step = isTurned ? -steps[event.key] : steps[event.key];
    const at = this.current === null ? (step > 0 ? -1 : 0) : this.current;
    this.current = (at + step + this.words.length) % this.words.length;
    const word = this.words[this.current];
    this.#mark([word, ...word.sources]);
    word.element.scrollIntoView({ block: "nearest" });
    const sources = word.sources.map((one) => this.source.value.slice(one.start, one.end)).join(" ");
    const own = word.element.textContent;
    this.announce(sources ? t("word_from", { word: own, source: sources }) : own);
  }
}

function element(name, className) {
  const made = document.createElement(name);
  made.className = className;
  return made;
}

// The two language lists, from the server's own. Owns which pairs can be chosen, the swap, and that
// the choice is remembered.

import { keep, recall } from "./storage.js";
import { interfaceLanguage, languageName, t } from "./strings.js";

const AUTO = "auto";

export class Languages {
  constructor({ from, to, onChange }) {
    Object.assign(this, { from, to, known: [], detected: null });
    from.addEventListener("change", () => {
      this.#fillTargets(this.to.value);
      this.#remember();
      onChange();
    });
    to.addEventListener("change", () => {
      this.#remember();
      onChange();
    });
  }

  get source() {
    return this.from.value;
  }

  get target() {
    return this.to.value;
  }

  /** The tag that texts are taken for: the chosen one, or what was detected. */
  get effectiveSource() {
    return this.source === AUTO ? this.detected : this.source;
  }

  /** Offer what the server has: `{code, name, targets}` each. */
  offer(known) {
    this.known = known;
    const [source, target] = recall("pair", [AUTO, ""], (pair) => Array.isArray(pair) && pair.length === 2);
    this.#fillSources(source);
    this.#fillTargets(target);
  }

  /** The same in another language of the interface. */
  rename() {
    const [source, target] = [this.source, this.target];
    this.#fillSources(source);
    this.#fillTargets(target);
  }

  /** Choose a pair, as far as it can be chosen. */
  choose(source, target) {
    if (has(this.from, source)) this.from.value = source;
    this.#fillTargets(target);
    this.#remember();
  }

  /**
   * Put each language in the other's place; whether that can be translated. A text that is in the target language
   * already goes from there into that of the interface, or into its usual one.
   */
  swap() {
    const source = this.effectiveSource ?? this.targetsOf(this.target)[0];
    if (source === this.target && this.targetsOf(source).length) {
      this.choose(source, interfaceLanguage());
      return true;
    }
    if (!source || !this.targetsOf(this.target).includes(source)) return false;
    this.choose(this.target, source);
    return true;
  }

  targetsOf(source) {
    const sources = source === AUTO ? this.known : this.known.filter((one) => one.code === source);
    const every = new Set(sources.flatMap((one) => one.targets.filter((tag) => tag !== one.code)));
    return this.known.map((one) => one.code).filter((tag) => every.has(tag));
  }

  name(tag) {
    return languageName(tag, this.known.find((one) => one.code === tag)?.name ?? tag);
  }

  #fillSources(wanted) {
    const codes = this.known.filter((one) => this.targetsOf(one.code).length).map((one) => one.code);
    fill(this.from, [[AUTO, t("auto")], ...this.#named(codes)], wanted, AUTO);
  }

  #fillTargets(wanted) {
    const codes = this.targetsOf(this.source);
    const own = interfaceLanguage();
    const usual = own === "en" ? codes.find((tag) => tag !== own) : codes.find((tag) => tag === "en");
    fill(this.to, this.#named(codes), wanted, usual ?? codes[0]);
  }

  #named(codes) {
    const named = codes.map((code) => [code, this.name(code)]);
    return named.sort((one, other) => one[1].localeCompare(other[1], interfaceLanguage()));
  }

  #remember() {
    keep("pair", [this.source, this.target]);
  }
}

function fill(select, options, wanted, otherwise) {
  select.replaceChildren(
    ...options.map(([value, text]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      return option;
    }),
  );
  select.value = has(select, wanted) ? wanted : (otherwise ?? "");
}

const has = (select, value) => [...select.options].some((option) => option.value === value);

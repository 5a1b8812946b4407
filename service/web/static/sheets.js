// What stands below the panes: what to look at twice, the glossary's hits, other ways to say it.

import { redraw } from "./redraw.js";
import { ariaShortcut } from "./shortcuts.js";
import { inLanguage, t } from "./strings.js";

const MAX_SHOWN = 90;

/** List the segments of which a check failed, of a text in a language that may be null. */
export function showFlags({ sheet, list }, segments, source) {
  const flagged = segments.filter((one) => one.is_truncated || one.quality?.failed?.length);
  sheet.hidden = flagged.length === 0;
  list.replaceChildren(
    ...flagged.map((one) => {
      const failed = one.quality?.failed ?? ["end"];
      const row = document.createElement("li");
      const what = document.createElement("strong");
      what.textContent = failed.map((name) => wordsOf(name)).join(" ");
      const quoted = document.createElement("q");
      quoted.dir = "auto";
      inLanguage(quoted, source);
      quoted.textContent = one.source.length > MAX_SHOWN ? `${one.source.slice(0, MAX_SHOWN)}…` : one.source;
      row.append(what, " ", quoted);
      return row;
    }),
  );
}

function wordsOf(check) {
  const key = `failed_${check}`;
  const words = t(key);
  return words === key ? t("failed_other", { check }) : words;
}

/** Say which terms of the glossary were used and which were not, over all segments. */
export function showGlossaryReport({ sheet, text }, segments) {
  const terms = segments.flatMap((one) => one.glossary ?? []);
  const named = (isHit) => new Set(terms.filter((one) => one.is_hit === isHit).map((one) => `${one.source} → ${one.target}`));
  const [hits, misses] = [[...named(true)], [...named(false)]];
  sheet.hidden = hits.length + misses.length === 0;
  const parts = [];
  if (hits.length) parts.push(t("glossary_hits", { terms: hits.join(", ") }));
  if (misses.length) parts.push(t("glossary_misses", { terms: misses.join(", ") }));
  text.textContent = parts.join(" ");
}

/** Offer other translations into a language; `onChosen(index)` takes one. */
export function showAlternatives({ sheet, list }, texts, target, onChosen) {
  sheet.hidden = texts.length === 0;
  inLanguage(list, target);
  redraw(
    list,
    texts.map((text, index) => {
      const row = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dir = "auto";
      button.textContent = text;
      if (index < 3) button.setAttribute("aria-keyshortcuts", ariaShortcut(index + 1));
      button.addEventListener("click", () => onChosen(index));
      row.append(button);
      return row;
    }),
  );
}

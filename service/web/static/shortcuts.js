// Keyboard shortcuts, each with a modifier, by the place of the key and not by its letter.

import { t } from "./strings.js";

const IS_MAC = /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform ?? "");
const CONTROL = IS_MAC ? "⌘" : "Ctrl";
const SHORTCUTS = [
  ["translate", [CONTROL, "Enter"]],
  ["swap", ["Alt", "Shift", "S"]],
  ["focus", ["Alt", "Shift", "T"]],
  ["copy", ["Alt", "Shift", "C"]],
  ["alternative", ["Alt", "Shift", "1…3"]],
  ["history", ["Alt", "Shift", "H"]],
  ["walk", ["←", "→"]],
];
const BY_CODE = { KeyS: "swap", KeyT: "focus", KeyC: "copy", KeyH: "history" };

/** Call `actions[name]()` for the keys of a shortcut, `actions.alternative(index)` for a digit. */
export function listen(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.repeat || document.querySelector("dialog[open]")) return;
    const action = actionOf(event, actions);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function actionOf(event, actions) {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") return actions.translate;
  if (!event.altKey || !event.shiftKey || event.ctrlKey || event.metaKey) return null;
  const digit = /^(?:Digit|Numpad)([1-3])$/.exec(event.code);
  if (digit) return () => actions.alternative(Number(digit[1]) - 1);
  return actions[BY_CODE[event.code]] ?? null;
}

/** Show the shortcuts in a list. */
export function draw(list) {
  const rows = SHORTCUTS.flatMap(([name, keys]) => {
    const term = document.createElement("dt");
    keys.forEach((key, index) => {
      if (index) term.append(" ");
      const shown = document.createElement("kbd");
      shown.textContent = key;
      term.append(shown);
    });
    const what = document.createElement("dd");
    what.textContent = t(`key_${name}`);
    return [term, what];
  });
  list.replaceChildren(...rows);
}

// Keyboard shortcuts, each with a modifier, by the place of the key and not by its letter.

import { t } from "./strings.js";

const IS_MAC = /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform ?? "");
const CONTROL = IS_MAC ? "⌘" : "Ctrl";
const MODIFIERS = IS_MAC ? ["⌃", "⌥"] : ["Alt", "Shift"]; // on a Mac Option and Shift write characters: € Ç Ś
const SHORTCUTS = [
  ["translate", [CONTROL, "Enter"]],
  ["swap", [...MODIFIERS, "S"]],
  ["focus", [...MODIFIERS, "T"]],
  ["copy", [...MODIFIERS, "C"]],
  ["alternative", [...MODIFIERS, "1…3"]],
  ["history", [...MODIFIERS, "H"]],
  ["walk", ["←", "→"]],
];
const BY_CODE = { KeyS: "swap", KeyT: "focus", KeyC: "copy", KeyH: "history" };

/** The shortcut with a key, as `aria-keyshortcuts` has it. */
export const ariaShortcut = (key) => `${IS_MAC ? "Control+Alt" : "Alt+Shift"}+${key}`;

/**
 * Call `actions[name]()` for the keys of a shortcut, `actions.alternative(index)` for a digit; `elements[key]` is
 * said to have that key.
 */
export function listen(actions, elements) {
  for (const [key, element] of Object.entries(elements)) element.setAttribute("aria-keyshortcuts", ariaShortcut(key));
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.isComposing || document.querySelector("dialog[open]")) return;
    const action = actionOf(event, actions);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function actionOf(event, actions) {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") return actions.translate;
  if (!event.altKey || event.shiftKey === IS_MAC || event.ctrlKey !== IS_MAC || event.metaKey) return null;
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

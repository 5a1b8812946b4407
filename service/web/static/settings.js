// The settings: the controls of colours, of the page's language, of typing that translates, of the API key. Owns
// that they show what is chosen; what is done about a choice is preferences.js's and main.js's.

import { isLive, otherTheme, setLive, theme, useTheme } from "./preferences.js";
import { chosenLanguage, keepLanguage } from "./strings.js";

/**
 * Listen to the controls. `onLive()` and `onKey(key)` are called with a choice; `onLanguage(tag)` is true if the page
 * speaks that language now.
 */
export function listenToSettings({ elements, onLive, onKey, onLanguage }) {
  const { themeSwitch, themeChoice, live, key, language } = elements;
  themeChoice.value = theme();
  themeChoice.addEventListener("change", () => useTheme(themeChoice.value));
  themeSwitch.addEventListener("click", () => {
    themeChoice.value = otherTheme();
    useTheme(themeChoice.value);
  });
  live.checked = isLive();
  live.addEventListener("change", () => {
    setLive(live.checked);
    onLive();
  });
  key.addEventListener("change", () => onKey(key.value));
  language.addEventListener("change", async () => {
    if (await onLanguage(language.value)) keepLanguage(language.value);
    else language.value = chosenLanguage();
  });
}

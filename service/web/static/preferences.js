// Colours, and whether typing translates: chosen once, remembered in this browser.

import { keep, recall } from "./storage.js";

const THEMES = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

/** The chosen colours: "auto", "light" or "dark". */
export const theme = () => recall("theme", "auto", (value) => THEMES.includes(value));

/** Choose colours. */
export function useTheme(chosen) {
  keep("theme", chosen);
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** The other colours than those that are seen now. */
export function otherTheme() {
  const seen = document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  return seen === "dark" ? "light" : "dark";
}

/** Whether typing translates. */
export const isLive = () => recall("live", true, (value) => typeof value === "boolean");

/** Choose whether typing translates. */
export const setLive = (value) => keep("live", value);

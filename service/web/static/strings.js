// Strings of the interface in its languages: strings-LANGUAGE.json. Owns which language is spoken,
// and how elements get their strings: `data-t` names the text of an element, `data-t-label` its
// aria-label (and its tooltip, if it is a button), `data-t-placeholder` its placeholder.

import { keep, recall } from "./storage.js";

export const LANGUAGES = ["en", "de", "zh"];

let table = {};
let language = "en";

/** The language of the interface, as a BCP-47 tag. */
export const interfaceLanguage = () => (language === "zh" ? "zh-Hans" : language);

/** The language of the interface, as `speak` takes it. */
export const chosenLanguage = () => language;

/** The language that was chosen before, or the first of the browser's that there is. */
export function preferredLanguage() {
  const wanted = navigator.languages.map((tag) => tag.toLowerCase().split("-")[0]);
  const first = wanted.find((tag) => LANGUAGES.includes(tag)) ?? "en";
  return recall("interface", first, (tag) => LANGUAGES.includes(tag));
}

/** Speak a language from now on; whether its strings could be had. */
export async function speak(tag) {
  try {
    const reply = await fetch(new URL(`strings-${tag}.json`, import.meta.url));
    if (!reply.ok) return false;
    table = await reply.json();
  } catch {
    return false;
  }
  language = tag;
  document.documentElement.lang = interfaceLanguage();
  translateElements(document);
  return true;
}

/** Remember the language for the next visit. */
export const keepLanguage = (tag) => keep("interface", tag);

/** The string of a key, `{name}` in it replaced by values. */
export function t(key, values = {}) {
  const text = table[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Give every element below `root` its strings. */
export function translateElements(root) {
  for (const element of root.querySelectorAll("[data-t]")) {
    element.textContent = t(element.dataset.t);
  }
  for (const element of root.querySelectorAll("[data-t-label]")) {
    const label = t(element.dataset.tLabel);
    element.setAttribute("aria-label", label);
    if (element.matches("button")) element.title = label;
  }
  for (const element of root.querySelectorAll("[data-t-placeholder]")) {
    element.placeholder = t(element.dataset.tPlaceholder);
  }
}

/** Say what language an element's text is in; null or "auto": it is not known. */
export function inLanguage(element, tag) {
  if (tag && tag !== "auto") element.lang = tag;
  else element.removeAttribute("lang");
}

/** A number as the interface's language writes it. */
export const number = (value) => new Intl.NumberFormat(interfaceLanguage()).format(value);

/** The name of a language in the interface's language. */
export function languageName(tag, fallback = tag) {
  try {
    const name = new Intl.DisplayNames(interfaceLanguage(), { type: "language" }).of(tag) ?? fallback;
    return name === tag ? fallback : name.charAt(0).toLocaleUpperCase() + name.slice(1);
  } catch {
    return fallback;
  }
}

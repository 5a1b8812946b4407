// The page: puts its parts together. Owns what is asked of the server, and what happens to an answer.

import { ApiError, apiKey, translate, useKey } from "./api.js";
import { copy } from "./clipboard.js";
import { openDialogs } from "./dialogs.js";
import { receiveFiles } from "./dropping.js";
import { featuresOf } from "./features.js";
import { COMPOSED_MS, Field } from "./field.js";
import { Files } from "./files.js";
import { Glossary } from "./glossary.js";
import { History } from "./history.js";
import { Languages } from "./languages.js";
import { Live } from "./live.js";
import { Notices } from "./notices.js";
import { Panes } from "./panes.js";
import { isLive } from "./preferences.js";
import { readText } from "./reading.js";
import { listenToSettings } from "./settings.js";
import { showAlternatives, showFlags, showGlossaryReport } from "./sheets.js";
import * as shortcuts from "./shortcuts.js";
import { Start } from "./start.js";
import { inLanguage, number, preferredLanguage, speak, t } from "./strings.js";
import { attentionSquare, linkSquare, WordTable } from "./wordmap.js";

const NUM_ALTERNATIVES = 3;
const MAX_CHARACTERS_WITH_ALTERNATIVES = 400;
const MAX_CHARACTERS_WITH_ATTENTION = 2000;

const byId = (id) => document.getElementById(id);
const source = byId("source");
const state = byId("state");
const output = byId("output");
let features = featuresOf(null);
let shown = null; // what stands in the right pane: {text, alternatives, entry}
let sentTerms = ""; // those of the newest request, as JSON

const announce = (text) => {
  byId("announcer").textContent = text;
};
const panes = new Panes({ source, mirror: byId("mirror"), field: byId("field"), output, announce });
const languages = new Languages({ from: byId("from"), to: byId("to"), onChange: changed });
const wordMap = new WordTable({ details: byId("word-map"), scroll: byId("map-scroll"), choice: byId("map-choice"), select: byId("map-segment"), square: linkSquare });
const heatMap = new WordTable({
  details: byId("heat-map"), scroll: byId("heat-scroll"), choice: byId("heat-choice"), select: byId("heat-segment"), square: attentionSquare, none: "heat_none",
});
const glossary = new Glossary({
  elements: { list: byId("term-list"), add: byId("add-term"), pairName: byId("glossary-pair") },
  onChange: changed,
  onOther: () => sentTerms && sentTerms !== JSON.stringify(currentTerms()) && changed(),
});
const history = new History({
  elements: { list: byId("history-list"), none: byId("history-empty"), clear: byId("clear-history"), toggle: byId("keep-history") },
  onChosen: showAgain,
});
const notices = new Notices({
  elements: { bar: byId("notice"), text: byId("notice-text"), form: byId("key-form"), input: byId("key"), action: byId("notice-action") },
  onKey: (key) => {
    useThisKey(key);
    source.focus();
  },
  onRetry: () => {
    output.focus();
    if (languages.known.length) live.now();
    else start.run();
  },
});
const files = new Files({
  sheet: byId("files"), list: byId("file-list"), opener: byId("open-file"), options: fileOptions, announce,
  onKeyWanted: (error) => notices.tell(error),
});
const live = new Live({ send, onStart: started, onSlow: slow, onResult: answered, onError: failed, onIdle: idle });
const field = new Field({ element: source, onText: written });
const start = new Start({ onLanguages: offer, onFeatures: useFeatures, onFailure: (error, seconds) => notices.tell(error, seconds) });

// --- from the page to the server ---

/** The field's text has changed, or one of its words is composed. */
function written(isComposing) {
  panes.typed();
  changed(isComposing);
}

/** The field, the languages or the terms have changed. */
function changed(isComposing = false) {
  if (languages.known.length) notices.hide(); // else it says why there are none
  const length = [...source.value].length;
  drawCount(length);
  drawLanguage();
  byId("clear").hidden = length === 0;
  byId("translate").hidden = true;
  if (!source.value.trim()) {
    live.cancel();
    clearAnswer();
  } else if (isTooLong(length)) {
    live.cancel();
    drawStale();
    notices.tell(new ApiError("too_long", { value: length, limit: features.maxCharacters }));
  } else if (isLive()) {
    live.soon(isComposing ? COMPOSED_MS : undefined);
  } else {
    rest(t("press_enter"));
  }
}

function isTooLong(length) {
  return features.maxCharacters !== null && length > features.maxCharacters;
}

/** Ask for nothing, and say why, until somebody wants it. */
function rest(words) {
  live.cancel();
  drawStale();
  state.textContent = words;
  byId("translate").hidden = false;
}

/** Ask for the translation of what is in the field; null if there is nothing to ask. */
function send(signal) {
  if (!source.value.trim() || isTooLong([...source.value].length) || !languages.target) return null;
  const values = { texts: [source.value], source: languages.source, target: languages.target, alignment: true, scores: true };
  if (source.value.length <= MAX_CHARACTERS_WITH_ALTERNATIVES) values.alternatives = NUM_ALTERNATIVES;
  if (byId("heat-map").open && mayHaveHeat()) values.attention = true;
  const terms = currentTerms();
  if (terms.length) values.glossary = terms;
  sentTerms = JSON.stringify(terms);
  return translate(values, signal);
}

function mayHaveHeat() {
  return features.hasAttention && [...source.value].length <= MAX_CHARACTERS_WITH_ATTENTION;
}

function currentTerms() {
  if (!features.hasGlossary) return [];
  return glossary.terms(languages.effectiveSource ?? "auto", languages.target);
}

function fileOptions() {
  const { source: from, target } = languages;
  const terms = features.hasGlossary ? glossary.terms(from, target) : [];
  return { source: from, target, ...(terms.length && { glossary: JSON.stringify(terms) }) };
}

// --- from the server to the page ---

function started() {
  output.classList.add("is-waiting");
  output.setAttribute("aria-busy", "true");
  if (document.activeElement === byId("translate")) output.focus();
  byId("translate").hidden = true;
  state.textContent = t("translating");
}

function slow() {
  state.textContent = t("still_translating");
  byId("stop").hidden = false;
}

function idle() {
  output.classList.remove("is-waiting");
  output.removeAttribute("aria-busy");
  if (document.activeElement === byId("stop")) output.focus();
  byId("stop").hidden = true;
  if (state.textContent === t("translating") || state.textContent === t("still_translating")) state.textContent = "";
}

function answered(reply, ms) {
  const [translation] = reply.translations;
  output.classList.remove("is-stale");
  const isFirst = !isPresent();
  languages.detected = translation.detected?.language ?? null;
  notices.hide();
  const entry = { source: languages.source, target: languages.target, text: source.value, translation: translation.text };
  shown = { text: translation.text, alternatives: translation.alternatives ?? [], entry };
  panes.show(translation);
  output.lang = reply.target;
  output.dataset.done = String(Number(output.dataset.done ?? 0) + 1);
  byId("copy").hidden = false;
  drawDetected(translation.detected, reply.target);
  drawLanguage();
  drawModels(reply, ms);
  showFlags({ sheet: byId("flags"), list: byId("flag-list") }, translation.segments, languages.effectiveSource);
  showGlossaryReport({ sheet: byId("glossary-report"), text: byId("glossary-hits") }, translation.segments);
  drawAlternatives();
  const pair = { source: languages.effectiveSource, target: reply.target };
  wordMap.show(panes.segments, pair);
  heatMap.show(mayHaveHeat() ? panes.segments : [], pair);
  // Asked for with the terms of another language than was found: once more, for a text once.
  if (isFirst && sentTerms !== JSON.stringify(currentTerms())) live.soon();
  history.soon(entry, () => announce(t("translated_into", { language: languages.name(reply.target) })));
}

/** Whether what is shown is a translation of what is in the field, as the languages are chosen now. */
function isPresent() {
  if (shown === null) return false;
  const { source: from, target, text } = shown.entry;
  return text === source.value && from === languages.source && target === languages.target;
}

/** Dim what is shown if it is of another text or of other languages. */
function drawStale() {
  output.classList.toggle("is-stale", shown !== null && !isPresent());
}

function failed(error, seconds) {
  if (!error.kind) throw error;
  state.textContent = "";
  drawStale();
  notices.tell(error, seconds);
}

function clearAnswer() {
  history.giveUp();
  shown = null;
  output.classList.remove("is-stale");
  languages.detected = null;
  panes.showPlain("");
  state.textContent = "";
  byId("detected").textContent = "";
  for (const id of ["copy", "flags", "glossary-report", "alternatives", "word-map", "heat-map"]) byId(id).hidden = true;
}

/** Put an alternative in the place of the translation, and that in its place. */
function takeAlternative(index) {
  if (!shown?.alternatives[index]) return;
  const text = shown.alternatives[index];
  shown.alternatives[index] = shown.text;
  shown.text = text;
  panes.showPlain(text);
  wordMap.show([]);
  heatMap.show([]);
  byId("flags").hidden = true;
  drawAlternatives();
  announce(text);
}

function drawAlternatives() {
  showAlternatives({ sheet: byId("alternatives"), list: byId("alternative-list") }, shown.alternatives, output.lang, takeAlternative);
}

// --- small things ---

function drawCount(length) {
  const limit = features.maxCharacters;
  byId("count").textContent = limit === null ? number(length) : `${number(length)} / ${number(limit)}`;
  byId("count").classList.toggle("count-over", isTooLong(length));
}

/** Say what language the field's text is in, for voices, letters' shapes and spelling. */
function drawLanguage() {
  inLanguage(byId("field"), source.value.trim() ? languages.effectiveSource : null);
}

function drawDetected(detected, target) {
  const name = detected && languages.name(detected.language);
  const key = !detected ? "" : detected.confidence === 0 ? "not_sure" : detected.language === target ? "is_target" : "detected";
  byId("detected").textContent = key ? t(key, { language: name, percent: number(detected.confidence) }) : "";
}

function drawModels(reply, ms) {
  const values = { models: reply.models.join(" → "), ms: number(Math.round(ms)) };
  state.textContent = reply.models.length ? t("translated_by", values) : t("stays");
}

async function copyShown() {
  if (!shown) return;
  if (isPresent()) state.textContent = (await copy(shown.text)) ? t("copied") : t("not_copied");
  else state.textContent = t("not_there");
  announce(state.textContent);
}

function swap() {
  const text = isPresent() ? shown.text : source.value;
  if (!languages.swap()) {
    state.textContent = t("no_way_back");
    announce(state.textContent);
    return;
  }
  if (byId("alternatives").contains(document.activeElement)) source.focus(); // they will be others
  setText(text);
}

function setText(text) {
  history.settle();
  field.put(text);
}

function showAgain(entry) {
  byId("history-dialog").close();
  languages.choose(entry.source, entry.target);
  setText(entry.text);
  source.focus();
}

/** Files become documents where the server takes them; else the first, of text, is read into the field. */
async function takeFiles(taken) {
  if (languages.known.length) notices.hide();
  if (features.hasDocuments) await Promise.all(taken.map((file) => files.translate(file)));
  else if (taken.length) await readFile(taken[0]);
}

async function readFile(file) {
  let text;
  try {
    text = await readText(file, features.maxCharacters);
  } catch (error) {
    if (!error.kind) throw error;
    notices.tell(error);
    return;
  }
  setText(text);
}

function useThisKey(key) {
  useKey(key);
  start.run();
  changed();
}

/** Speak a language of the interface; whether its strings could be had. */
async function useLanguage(tag) {
  const isSpoken = await speak(tag);
  if (!isSpoken) return false;
  byId("interface").value = tag;
  languages.rename();
  shortcuts.draw(byId("shortcut-list"));
  changed();
  return true;
}

async function changeLanguage(tag) {
  const isSpoken = await useLanguage(tag);
  if (!isSpoken) notices.tell(new ApiError("offline"));
  return isSpoken;
}

// --- start ---

function listen() {
  // Weights cost the server a second pass, so they are asked for once somebody wants to see them.
  byId("heat-map").addEventListener("toggle", () => {
    if (byId("heat-map").open && isPresent()) live.now();
  });
  byId("clear").addEventListener("click", () => {
    setText("");
    source.focus();
  });
  byId("stop").addEventListener("click", () => {
    rest(t("stopped"));
    byId("translate").focus();
  });
  byId("translate").addEventListener("click", () => live.now());
  byId("swap").addEventListener("click", swap);
  byId("copy").addEventListener("click", copyShown);
  receiveFiles({ curtain: byId("drop"), opener: byId("open-file"), input: byId("file-input") }, takeFiles);
  listenToSettings({
    elements: { themeSwitch: byId("theme"), themeChoice: byId("theme-choice"), live: byId("live"), key: byId("settings-key"), language: byId("interface") },
    onLive: changed,
    onKey: useThisKey,
    onLanguage: changeLanguage,
  });
  openDialogs({
    "open-history": [byId("history-dialog"), () => history.settle()],
    "open-settings": [byId("settings-dialog"), () => (byId("settings-key").value = apiKey())],
    "open-shortcuts": [byId("shortcuts-dialog"), () => {}],
    "open-glossary": [byId("glossary-dialog"), drawGlossary],
  });
  const actions = {
    translate: () => live.now(),
    swap,
    focus: () => source.focus(),
    copy: copyShown,
    alternative: takeAlternative,
    history: () => byId("open-history").click(),
  };
  shortcuts.listen(actions, { S: byId("swap"), C: byId("copy") });
}

function drawGlossary() {
  const from = languages.effectiveSource;
  const names = { source: from ? languages.name(from) : t("auto"), target: languages.name(languages.target) };
  glossary.draw(from ?? "auto", languages.target, names);
}

function offer(known) {
  notices.hide();
  languages.offer(known);
}

function useFeatures(found) {
  features = found;
  byId("open-glossary").hidden = !features.hasGlossary;
  document.documentElement.dataset.ready = "yes";
  changed();
}

listen();
// Without strings the page has those of its markup, which are English.
if (!(await useLanguage(preferredLanguage()))) await useLanguage("en");
await start.run();

// Calls of one client: their results, or the names of their errors, as one JSON object on standard output.
// node run.cjs CLIENT URL KEY

const fs = require("fs");
const os = require("os");
const path = require("path");

const [client, url, key] = process.argv.slice(2);

const TEXT = "Where is the station?";
const GERMAN = "Guten Tag, wie geht es Ihnen?";

function deeplCalls() {
  const deepl = require("deepl-node");
  const options = { serverUrl: url, maxRetries: 0 };
  const translator = new deepl.DeepLClient(key, options);
  const stranger = new deepl.DeepLClient("wrong", options);
  const to = (target, more) => translator.translateText(TEXT, "en", target, more);
  return {
    german: () => to("de"),
    chinese: () => to("zh-HANS"),
    detected: () => translator.translateText([GERMAN, TEXT], null, "en-GB"),
    splitting: () => to("de", { splitSentences: "nonewlines", preserveFormatting: true }),
    wishes: () => to("de", { formality: "prefer_more", context: "He has just arrived." }),
    low_latency: () => to("de", { modelType: "latency_optimized" }),
    tags: () =>
      translator.translateText("<p>Where is the <b>station</b>?</p>", "en", "de", { tagHandling: "html" }),
    document: async () => {
      const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "client-")), "new.txt");
      const status = await translator.translateDocument(Buffer.from(TEXT), file, "en", "de", { filename: "a.txt" });
      return { done: status.done(), text: fs.readFileSync(file, "utf-8") };
    },
    formality: () => to("de", { formality: "more" }),
    unknown_target: () => to("xx"),
    wrong_key: () => stranger.translateText(TEXT, null, "de"),
    sources: () => translator.getSourceLanguages(),
    targets: () => translator.getTargetLanguages(),
    usage: () => translator.getUsage(),
    glossary: async () => {
      const terms = new deepl.GlossaryEntries({ entries: { station: "Haltepunkt" } });
      const made = await translator.createGlossary("places", "en", "de", terms);
      const { text } = await to("de", { glossary: made });
      const entries = (await translator.getGlossaryEntries(made)).entries();
      await translator.deleteGlossary(made);
      return { text, entries, name: made.name, count: made.entryCount, left: await translator.listGlossaries() };
    },
    dictionaries: async () => {
      const dictionary = (target, word) => ({
        sourceLangCode: "en",
        targetLangCode: target,
        entries: new deepl.GlossaryEntries({ entries: { station: word } }),
      });
      const made = await translator.createMultilingualGlossary("places", [dictionary("de", "Bahnhof")]);
      await translator.updateMultilingualGlossaryDictionary(made.glossaryId, dictionary("zh", "车站"));
      await translator.replaceMultilingualGlossaryDictionary(made.glossaryId, dictionary("de", "Haltepunkt"));
      const { text } = await to("de", { glossary: made.glossaryId });
      const found = await translator.getMultilingualGlossary(made.glossaryId);
      const pairs = found.dictionaries.map((one) => [one.sourceLangCode, one.targetLangCode, one.entryCount]);
      await translator.deleteMultilingualGlossary(made.glossaryId);
      return { text, pairs, left: await translator.listMultilingualGlossaries() };
    },
    glossary_languages: () => translator.getGlossaryLanguagePairs(),
  };
}

function libreTranslateCalls() {
  const { translate } = require("libretranslate");
  const to = (target, more) => translate({ query: TEXT, target, apiurl: url, ...more });
  return {
    german: () => to("de", { source: "en" }),
    chinese: () => to("zh-Hans", { source: "en", apiKey: key }),
    detected: () => translate({ query: GERMAN, target: "en", apiurl: url }),
    list: () => to("de", { source: "en", query: [TEXT, "Hello"] }),
    unknown_target: () => to("xx", { source: "en" }),
  };
}

async function outcome(call) {
  try {
    return { value: await call() };
  } catch (error) {
    return { error: error.constructor.name, message: error.message };
  }
}

async function main() {
  const calls = client === "deepl-node" ? deeplCalls() : libreTranslateCalls();
  const outcomes = {};
  for (const [name, call] of Object.entries(calls)) outcomes[name] = await outcome(call);
  console.log(JSON.stringify(outcomes));
}

main();

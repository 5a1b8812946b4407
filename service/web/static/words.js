// Words of a text and of its translation, and which belong together: pure, no page. The server speaks
// of tokens (pieces of words) and counts characters; this makes words of tokens, and places in
// JavaScript's strings, which count UTF-16 units.

const LETTER = /[\p{L}\p{N}\p{M}]/u;
const RIGHT_TO_LEFT = /^\P{L}*[\p{Script=Adlam}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Nko}\p{Script=Syriac}\p{Script=Thaana}]/u;
const UNSPACED = /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u;

/**
 * Segments of a translation with their places in both texts.
 *
 * Each is `{segment, source: [start, end], target: [start, end], sourceWords, targetWords}`; a word is
 * `{start, end, sources, probability, weights}`, its places those in the whole text, `sources` indexes
 * of `sourceWords`, `weights` one for each of these. A segment that is found in neither text is left out.
 */
export function placed(source, translation) {
  const found = [];
  let sourceAt = 0;
  let targetAt = 0;
  for (const segment of translation.segments) {
    const start = source.indexOf(segment.source, sourceAt);
    const targetStart = translation.text.indexOf(segment.text, targetAt);
    if (start < 0 || targetStart < 0) continue;
    sourceAt = start + segment.source.length;
    targetAt = targetStart + segment.text.length;
    found.push({
      segment,
      source: [start, sourceAt],
      target: [targetStart, targetAt],
      ...linked(segment, start, targetStart),
    });
  }
  return found;
}

/** Whether the line at a place of a text runs from right to left, as its first letter does. */
export function isRightToLeft(text, place) {
  const start = text.lastIndexOf("\n", place - 1) + 1;
  const end = text.indexOf("\n", place);
  return RIGHT_TO_LEFT.test(text.slice(start, end < 0 ? text.length : end));
}

function linked(segment, sourceStart, targetStart) {
  const { alignment, source_spans: sourceSpans, target_spans: targetSpans } = segment;
  if (!alignment || !sourceSpans || !targetSpans) return { sourceWords: [], targetWords: [] };
  const source = wordsOf(segment.source, sourceSpans, sourceStart);
  const target = wordsOf(segment.text, targetSpans, targetStart);
  const logs = segment.token_log_probs ?? [];
  for (const word of target.words) {
    const counts = new Map();
    let sum = 0;
    for (const token of word.tokens) {
      const index = source.wordOf[alignment[token]] ?? -1;
      if (index >= 0) counts.set(index, (counts.get(index) ?? 0) + 1);
      sum += logs[token] ?? 0;
    }
    word.sources = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
    word.weights = weightsOf(segment.attention, word, source.words);
    word.probability = logs.length ? Math.exp(sum / word.tokens.length) : null;
  }
  return { sourceWords: source.words, targetWords: target.words };
}

/** How much a target word attended to each source word: the mean of its tokens; null if untold. */
function weightsOf(attention, word, sourceWords) {
  if (!attention) return null;
  const all = (tokens, row) => tokens.reduce((sum, token) => sum + (row?.[token] ?? 0), 0);
  return sourceWords.map((one) => {
    const sums = word.tokens.map((token) => all(one.tokens, attention[token]));
    return sums.reduce((sum, value) => sum + value, 0) / sums.length;
  });
}

/** Words of tokens, with for every token the index of its word, or -1. */
function wordsOf(text, spans, offset) {
  const units = unitPlaces(text);
  const words = [];
  const wordOf = spans.map((span, token) => {
    if (!span || span[0] === span[1]) return -1;
    const [start, end] = [units(span[0]), units(span[1])];
    const last = words.at(-1);
    if (last && isOneWord(text, last, offset, start, end)) {
      last.end = Math.max(last.end, end + offset);
      last.tokens.push(token);
    } else {
      words.push({ start: start + offset, end: end + offset, tokens: [token], sources: [], probability: null });
    }
    return words.length - 1;
  });
  return { words, wordOf };
}

function isOneWord(text, last, offset, start, end) {
  const lastEnd = last.end - offset;
  if (start < lastEnd) return end > last.start - offset; // the same mark, of several tokens
  const before = text.slice(0, lastEnd).match(/.$/su)?.[0] ?? "";
  const after = String.fromCodePoint(text.codePointAt(start) ?? 32);
  return start === lastEnd && [before, after].every((one) => LETTER.test(one) && !UNSPACED.test(one));
}

/** A function from places in characters to places in UTF-16 units. */
function unitPlaces(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (place) => place;
  const places = [0];
  for (const character of text) places.push(places.at(-1) + character.length);
  return (place) => places[Math.min(place, places.length - 1)];
}

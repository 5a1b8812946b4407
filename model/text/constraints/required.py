"""Terms as phrases of tokens, which a search can be held to.

Owns how a network may spell what stands for a term: its tokens behind a space, and where a sentence
may begin with it, with a capital; in languages without spaces, its tokens behind other characters
too. What a search does with phrases is `model.phrases`; whether the term is in the text then, as a
whole word, is `model.text.constraints.glossary`.
"""

from collections.abc import Iterator, Sequence

from model.phrases import MAX_PHRASE_TOKENS, MAX_PHRASES, Alternatives
from model.text.constraints.glossary import Term
from model.text.languages.scripts import UNSPACED_LANGUAGES
from model.text.languages.tags import LanguagePair, primary_language
from model.text.subwords.tokenizer import Tokenizer

_ANCHORS = "，、的"  # something else of these stands before a phrase in a language without spaces


def phrases_of(
    terms: Sequence[Term], tokenizer: Tokenizer, pair: LanguagePair
) -> tuple[Alternatives, ...]:
    """Each term's spellings in the target's tokens.

    Args:
        terms: Of a segment.
        tokenizer: Of the checkpoint.
        pair: A pair of it.

    Returns:
        None at all if one of them cannot be written, or they are too many for a search.
    """
    is_unspaced = primary_language(pair.target) in UNSPACED_LANGUAGES
    every = [
        tuple(dict.fromkeys(_spellings(term, tokenizer, is_unspaced=is_unspaced))) for term in terms
    ]
    # What normalises to nothing has no tokens, which no search can choose.
    are_writable = all(
        own and all(path and tokenizer.is_writable(path) for path in own) for own in every
    )
    if len(every) > MAX_PHRASES or not are_writable:
        return ()
    for phrases in (tuple(every), tuple(own[:1] for own in every)):
        if sum(len(path) for own in phrases for path in own) <= MAX_PHRASE_TOKENS:
            return phrases
    return ()


def _spellings(term: Term, tokenizer: Tokenizer, *, is_unspaced: bool) -> Iterator[tuple[int, ...]]:
    """The tokens of what stands for a term, the likeliest first; some may be alike."""
    if is_unspaced:
        for anchor in _ANCHORS:
            before = _ids(anchor, tokenizer)
            whole = _ids(anchor + term.target, tokenizer)
            if whole[: len(before)] == before and len(whole) > len(before):
                yield whole[len(before) :]
    yield _ids(term.target, tokenizer)
    first = term.target[0]
    if not is_unspaced and not term.is_case_sensitive and first.islower():
        yield _ids(first.upper() + term.target[1:], tokenizer)


def _ids(text: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    *ids, _ = tokenizer.encode_target(text)
    return tuple(ids)

"""How terms are spelt for a search that is held to them, by the tokenizers of bundled networks."""

from functools import cache
from pathlib import Path

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.phrases import MAX_PHRASE_TOKENS, MAX_PHRASES
from model.text.constraints.glossary import Term
from model.text.constraints.required import phrases_of
from model.text.languages.tags import LanguagePair
from model.text.subwords.tokenizer import Tokenizer

CHECKPOINTS = Path(__file__).resolve().parents[4] / "checkpoints"


@cache
def bundled(name: str) -> tuple[Tokenizer, LanguagePair]:
    manifest = read_manifest(CHECKPOINTS / name)
    return load_tokenizer(CHECKPOINTS / name, manifest), manifest.pairs[0]


def term(target: str, *, is_case_sensitive: bool = False) -> Term:
    return Term(start=0, end=1, target=target, is_case_sensitive=is_case_sensitive)


def spelt(name: str, *terms: Term) -> list[list[str]]:
    tokenizer, pair = bundled(name)
    return [
        [tokenizer.decode(path).strip() for path in phrase]
        for phrase in phrases_of(terms, tokenizer, pair)
    ]


def test_a_sentence_may_begin_with_a_term_unless_its_casing_is_fixed() -> None:
    assert spelt("en-de-small", term("kater"), term("Hund")) == [["kater", "Kater"], ["Hund"]]
    assert spelt("en-de-small", term("kater", is_case_sensitive=True)) == [["kater"]]


def test_a_term_stands_behind_a_space_where_words_do_and_anywhere_where_none_do() -> None:
    tokenizer, pair = bundled("en-de-small")
    (phrase,) = phrases_of([term("Hund")], tokenizer, pair)
    assert tokenizer.decode([*phrase[0], *phrase[0]]).strip() == "Hund Hund"
    tokenizer, pair = bundled("en-zh-small")
    (phrase,) = phrases_of([term("服务器")], tokenizer, pair)
    assert {tokenizer.decode(path).strip() for path in phrase} == {"服务器"}
    joined = {tokenizer.decode([*phrase[0], *path]).strip() for path in phrase}
    assert "服务器服务器" in joined


def test_what_cannot_be_written_or_is_too_much_is_asked_of_no_search() -> None:
    tokenizer, _ = bundled("en-de-small")
    *_, eos_id = tokenizer.encode_target("Hund")
    assert not tokenizer.is_writable([eos_id])
    assert spelt("en-de-small", term("Hund"), term("\u200b")) == []
    assert spelt("en-de-small", term("\ufffd")) == []
    assert spelt("en-de-small", *[term("Hund")] * (MAX_PHRASES + 1)) == []
    assert spelt("en-de-small", term("Hund" + " Hund" * MAX_PHRASE_TOKENS)) == []


def test_where_there_is_no_room_for_all_spellings_each_term_has_its_first() -> None:
    tokenizer, pair = bundled("en-de-small")
    many = [term("donaudampfschifffahrt")] * 4
    phrases = phrases_of(many, tokenizer, pair)
    num_tokens = sum(len(path) for phrase in phrases for path in phrase)
    assert [len(phrase) for phrase in phrases] == [1] * 4
    assert MAX_PHRASE_TOKENS // 2 < num_tokens <= MAX_PHRASE_TOKENS

"""What a vocabulary cannot write: what is carried of it, and what is read in a commoner form."""

import io
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import build_tokenizer, load_tokenizer
from model.text.drafts.rare import RareText
from model.text.languages.tags import LanguagePair
from model.text.subwords.pieces import PieceModel
from model.text.subwords.tokenizer import Tokenizer
from support.running_server import ROOT
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint


@pytest.fixture(scope="module")
def german() -> tuple[RareText, LanguagePair]:
    """Of a vocabulary that spells rarer signs in bytes, and has no piece for ’ and –."""
    folder = ROOT / "checkpoints/en-de-small"
    manifest = read_manifest(folder)
    pair = manifest.pair("en", "de")
    assert pair is not None
    return RareText(load_tokenizer(folder, manifest)), pair


def without_bytes(folder: Path, *symbols: str) -> Tokenizer:
    """Of a vocabulary that can spell no sign but these."""
    manifest = read_manifest(write_tiny_checkpoint(folder / f"tiny-{len(symbols)}"))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(english for english, _ in generated_pairs()),
        model_writer=model,
        model_type="bpe",
        vocab_size=120,
        user_defined_symbols=list(symbols),
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    pieces = PieceModel(model.getvalue())
    table = pieces.table()
    fitting = replace(manifest, network=replace(manifest.network, vocab_size=len(pieces)))
    return build_tokenizer(
        fitting, source_model=pieces, target_model=pieces, source_table=table, target_table=table
    )


def carried(german: tuple[RareText, LanguagePair], text: str) -> list[str]:
    rare, pair = german
    return [text[one.start : one.end] for one in rare.marks(text, pair)]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("I don’t know what it’s about.", "I don't know what it's about."),
        ("the dogs’ house, goin’ home, ’tis", "the dogs' house, goin' home, 'tis"),
        ("‘Hello’, I don’t say", "‘Hello’, I don't say"),
        ("’Hej’, sa han. Det är O’Neil.", "’Hej’, sa han. Det är O'Neil."),
        ("an e‑mail, an e‐mail", "an e-mail, an e-mail"),
        ("Berlin–Hamburg — or not", "Berlin–Hamburg — or not"),
        ("plain, 5’ long", "plain, 5’ long"),
    ],
)
def test_apostrophes_and_hyphens_are_read_as_common_ones(
    german: tuple[RareText, LanguagePair], text: str, read: str
) -> None:
    rare, pair = german
    assert rare.readable(text, pair) == read


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("I don’t know what it’s about – or do I?", []),
        ("He said “Hello” — it’s 5°.", ["“", "”", "°"]),
        ("‘Hello’, I don’t say", ["‘", "’"]),
        ("a добро here", ["добро"]),
    ],
)
def test_what_the_network_reads_is_not_carried(
    german: tuple[RareText, LanguagePair], text: str, signs: list[str]
) -> None:
    assert carried(german, text) == signs


def test_a_letter_is_asked_of_with_its_accents(german: tuple[RareText, LanguagePair]) -> None:
    text = unicodedata.normalize("NFD", "Die Tür ist „schön“.")
    assert carried(german, text) == ["„", "“"]
    assert carried(german, unicodedata.normalize("NFD", "Die Tu\u0327r ist „schön“.")) != []


def test_a_dash_that_no_byte_can_spell_is_read_as_a_hyphen_if_there_is_one(tmp_path: Path) -> None:
    text = "the river – the cat’s"
    for symbols, expected in (("-", "'"), "the river - the cat's"), ((), text):
        tokenizer = without_bytes(tmp_path, *symbols)
        assert tokenizer.unk_id in tokenizer.encode("–", EN_ZH)
        rare = RareText(tokenizer)
        assert rare.readable(text, EN_ZH) == expected
        signs = [text[one.start : one.end] for one in rare.marks(text, EN_ZH)]
        assert signs == ([] if symbols else ["–", "’"])

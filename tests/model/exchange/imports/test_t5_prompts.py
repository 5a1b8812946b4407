from model.exchange.imports.t5_prompts import prompted_directions
from model.text.languages.tags import all_pairs
from model.text.subwords.pieces import PieceModel
from support.foreign_folders import MADLAD_SYMBOLS, trained_spm


def madlad_pieces() -> PieceModel:
    return PieceModel(trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1))


def test_all_tags_among_the_pieces_are_languages_of_all_directions() -> None:
    asked = prompted_directions(madlad_pieces(), ())
    found = {language.tag: language.wanted_prefix for language in asked.languages}
    assert found == {"en": ("<2en>",), "de": ("<2de>",), "zh-Hans": ("<2zh>",), "he": ("<2iw>",)}
    assert asked.pairs == all_pairs(asked.languages)
    assert len(asked.pairs) == 12
    assert asked.problems == ()
    assert asked.notes == (
        "Tokens without a language tag of their own, which no direction uses: <2nonsense>.",
    )


def test_a_tag_that_sentencepiece_sees_has_a_space_before_it() -> None:
    pieces = madlad_pieces()
    for added, prompt in ((None, ()), ({"<2de>", "<2en>"}, ()), (set(), ("▁",))):
        for wanted in ((("en", "de"),), ()):
            pairs = prompted_directions(pieces, wanted, added=added).pairs
            (pair,) = (pair for pair in pairs if (pair.source, pair.target) == ("en", "de"))
            assert (pair.source_prompt, pair.source_prefix) == (prompt, ("<2de>",))


def test_no_pieces_ask_for_nothing() -> None:
    assert prompted_directions(None, ()).pairs == ()

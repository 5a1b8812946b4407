import threading
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.checkpoint.tokenizer import build_tokenizer, load_tokenizer
from model.errors import ConfigError
from model.text.languages.tags import LanguagePair
from model.text.subwords.pieces import OwnTable, PieceModel
from model.text.subwords.tokenizer import Tokenizer, readable
from support.tiny_checkpoint import (
    EN_ZH,
    TINY_TOKENS,
    ZH_EN,
    generated_pairs,
    tiny_spm,
    write_tiny_checkpoint,
)

ANY_VALID_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("tokenizer") / "tiny")


@pytest.fixture(scope="module")
def manifest(directory: Path) -> Manifest:
    return read_manifest(directory)


@pytest.fixture(scope="module")
def tokenizer(directory: Path, manifest: Manifest) -> Tokenizer:
    return load_tokenizer(directory, manifest)


@pytest.fixture(scope="module")
def pieces() -> PieceModel:
    return PieceModel(tiny_spm())


def with_pairs(manifest: Manifest, *pairs: LanguagePair) -> Manifest:
    return replace(manifest, pairs=pairs)


def build(manifest: Manifest, pieces: PieceModel, table: Mapping[str, int]) -> Tokenizer:
    return build_tokenizer(
        manifest, source_model=pieces, target_model=pieces, source_table=table, target_table=table
    )


def test_a_source_ends_with_eos_and_a_text_comes_back(tokenizer: Tokenizer) -> None:
    for english, chinese in generated_pairs(20):
        ids = tokenizer.encode(english, EN_ZH)
        assert ids[-1] == TINY_TOKENS.eos_id
        assert tokenizer.decode(ids) == english
        assert tokenizer.decode(tokenizer.encode_target(chinese)) == chinese


def test_a_source_has_no_eos_where_the_network_learned_none(
    manifest: Manifest, pieces: PieceModel
) -> None:
    tokens = replace(manifest.tokens, has_source_eos=False)
    table = pieces.table()
    tagged = LanguagePair(source="en", target="zh-Hans", source_prefix=("▁cat",))
    tokenizer = build(replace(manifest, tokens=tokens, pairs=(tagged,)), pieces, table)
    with_eos = build(with_pairs(manifest, tagged), pieces, table)
    text = "The river sees </s>."
    assert tokenizer.encode(text, tagged) == with_eos.encode(text, tagged)[:-1]
    assert tokenizer.encode_target(text) == with_eos.encode_target(text)
    extras = [each.num_source_extras(tagged) for each in (tokenizer, with_eos)]
    assert extras == [1, 2] == [len(each.encode("", tagged)) for each in (tokenizer, with_eos)]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_prompt_in_words_takes_no_piece_from_the_text(
    manifest: Manifest, pieces: PieceModel, is_own: bool
) -> None:
    asked = LanguagePair(
        source="en", target="zh-Hans", source_prompt=("▁The", "▁cat"), source_prefix=("▁sees",)
    )
    table = pieces.table()
    tokenizer = build(with_pairs(manifest, asked), pieces, OwnTable(pieces) if is_own else table)
    start = [table[piece] for piece in ("▁The", "▁cat", "▁sees")]
    ids = tokenizer.encode("The cat sees", asked)
    assert ids == [*start, *start[:2], TINY_TOKENS.unk_id, TINY_TOKENS.eos_id]
    assert tokenizer.num_source_extras(asked) == 4
    assert tokenizer.source_pieces()[start[2]] == "▁sees"


def test_characters_never_seen_come_back_through_bytes(tokenizer: Tokenizer) -> None:
    text = "The cat sees 😀 ναι."
    ids = tokenizer.encode(text, EN_ZH)
    assert TINY_TOKENS.unk_id not in ids
    assert tokenizer.decode(ids) == text


def test_a_piece_without_an_id_becomes_unk(manifest: Manifest, pieces: PieceModel) -> None:
    table = pieces.table()
    # The piece's id keeps a name, as no id of the target may be without one.
    table["never written"] = table.pop("▁cat")
    tokenizer = build(manifest, pieces, table)
    assert TINY_TOKENS.unk_id in tokenizer.encode("The cat sees the river.", EN_ZH)


@pytest.mark.parametrize("text", ["</s>", "<pad>", "<unk>", "a </s> b", "<s>", "__zh__ text"])
def test_no_text_spells_a_special_token_or_a_tag(
    manifest: Manifest, pieces: PieceModel, text: str
) -> None:
    tagged = LanguagePair(source="en", target="zh-Hans", source_prefix=("▁cat",))
    tokenizer = build(with_pairs(manifest, tagged), pieces, pieces.table())
    first, *ids, last = tokenizer.encode(text + " cat", tagged)
    assert (first, last) == (pieces.table()["▁cat"], TINY_TOKENS.eos_id)
    assert not {TINY_TOKENS.pad_id, TINY_TOKENS.eos_id, first}.intersection(ids)


@pytest.mark.parametrize("name", ["pad_id", "eos_id", "unk_id", "start_id"])
@pytest.mark.parametrize("is_own", [True, False])
def test_each_special_token_is_kept_out_of_texts_wherever_its_id_stands(
    manifest: Manifest, pieces: PieceModel, name: str, is_own: bool
) -> None:
    table = pieces.table()
    special = table["▁cat"]  # a piece that text has, in a table where it is the special token
    tokens = replace(manifest.tokens, **{name: special})
    tokenizer = build(
        replace(manifest, tokens=tokens), pieces, OwnTable(pieces) if is_own else table
    )
    others = [table["▁The"], table["▁sees"]]
    ids = [others[0], tokens.unk_id, others[1]]
    assert tokenizer.encode("The cat sees", EN_ZH) == [*ids, tokens.eos_id]
    assert tokenizer.encode_target("The cat sees") == [*ids, tokens.eos_id]
    assert tokenizer.decode([others[0], special, others[1]]) == "The sees"
    assert special not in tokenizer.source_pieces()
    assert special not in tokenizer.target_pieces()


@pytest.mark.parametrize("is_own", [True, False])
def test_a_tag_is_kept_out_of_the_texts_of_its_own_side_only(
    manifest: Manifest, pieces: PieceModel, is_own: bool
) -> None:
    table = pieces.table()
    tagged = LanguagePair(
        source="en", target="zh-Hans", source_prefix=("▁cat",), target_prefix=("▁sees",)
    )
    tokenizer = build(with_pairs(manifest, tagged), pieces, OwnTable(pieces) if is_own else table)
    the, cat, sees = (table[piece] for piece in ("▁The", "▁cat", "▁sees"))
    unk, eos = TINY_TOKENS.unk_id, TINY_TOKENS.eos_id
    assert tokenizer.encode("The cat sees", tagged) == [cat, the, unk, sees, eos]
    assert tokenizer.encode_target("The cat sees") == [the, cat, unk, eos]
    assert tokenizer.decode([the, cat, sees]) == "The cat"


def test_ids_end_where_the_pieces_end(manifest: Manifest, pieces: PieceModel) -> None:
    tokenizer = build(manifest, pieces, OwnTable(pieces))
    size = len(pieces)
    last = pieces.own_piece(size - 1)
    assert tokenizer.decode([size - 1]) == pieces.text([last])
    assert tokenizer.decode([size]) == tokenizer.decode([-1]) == ""


def test_prefixes_stand_before_the_source_and_after_the_start_token(
    manifest: Manifest, pieces: PieceModel
) -> None:
    tagged = LanguagePair(
        source="en", target="zh-Hans", source_prefix=("▁cat", "▁sees"), target_prefix=("猫",)
    )
    table = pieces.table()
    tokenizer = build(with_pairs(manifest, tagged), pieces, table)
    assert tokenizer.encode("", tagged) == [table["▁cat"], table["▁sees"], TINY_TOKENS.eos_id]
    assert tokenizer.target_prefix(tagged) == [TINY_TOKENS.start_id, table["猫"]]


def test_specials_tags_and_nameless_ids_are_left_out_of_a_decoded_text(
    manifest: Manifest, pieces: PieceModel
) -> None:
    tagged = LanguagePair(source="en", target="zh-Hans", target_prefix=("猫",))
    table = pieces.table()
    tokenizer = build(with_pairs(manifest, tagged), pieces, table)
    ids = [0, table["猫"], table["▁The"], 2, table["▁cat"], 10**6, -1, 1]
    assert tokenizer.decode(ids) == "The cat"
    assert tokenizer.decode([]) == ""


def test_separate_sides_have_their_own_models_and_tables(
    manifest: Manifest, pieces: PieceModel
) -> None:
    size = manifest.network.output_size
    turned = {
        piece: index if index < 3 else 3 + (index + 100) % (size - 3)
        for piece, index in pieces.table().items()
    }
    tagged = replace(EN_ZH, source_prefix=("▁waits",), target_prefix=("猫", "▁river"))
    tokenizer = build_tokenizer(
        with_pairs(manifest, EN_ZH, tagged),
        source_model=pieces,
        target_model=PieceModel(tiny_spm()),
        source_table=pieces.table(),
        target_table=turned,
    )
    assert tokenizer.encode("", tagged) == [pieces.table()["▁waits"], 1]
    assert tokenizer.target_prefix(tagged) == [0, turned["猫"], turned["▁river"]]
    assert tokenizer.encode("The cat", EN_ZH) == [*(pieces.table()[p] for p in ("▁The", "▁cat")), 1]
    assert tokenizer.encode_target("The cat") == [turned["▁The"], turned["▁cat"], 1]
    assert tokenizer.decode([turned["▁The"], turned["▁cat"]]) == "The cat"


@given(ANY_VALID_TEXT)
@settings(max_examples=300, deadline=None)
def test_any_text_is_encoded_and_decoded_without_an_error(
    tokenizer: Tokenizer, manifest: Manifest, text: str
) -> None:
    ids = tokenizer.encode(text, ZH_EN)
    assert all(0 <= index < manifest.network.vocab_size for index in ids)
    tokenizer.decode(ids)


@given(st.lists(st.integers(-5, 700)))
@settings(max_examples=300, deadline=None)
def test_any_ids_are_decoded_to_text_that_is_utf8(tokenizer: Tokenizer, ids: list[int]) -> None:
    tokenizer.decode(ids).encode("utf-8")


@pytest.mark.parametrize("text", ["\0", "a\0b", "\x01\x1b[31m\x7f", "\ufffd", "\ufeff", "▁▁▁"])
def test_control_characters_do_no_harm(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text, EN_ZH)[-1] == TINY_TOKENS.eos_id


def test_threads_may_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    lines = [line for pair in generated_pairs(100) for line in pair]
    expected = [tokenizer.encode(line, EN_ZH) for line in lines]
    found: list[list[list[int]]] = []

    def encode_all() -> None:
        found.append([tokenizer.encode(line, EN_ZH) for line in lines])

    threads = [threading.Thread(target=encode_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_all_that_does_not_fit_the_network_is_listed_at_once(
    manifest: Manifest, pieces: PieceModel
) -> None:
    table = pieces.table()
    del table["▁cat"]
    table["▁The"] = 600
    table["▁sees"] = table["猫"]
    tagged = LanguagePair(source="en", target="zh-Hans", source_prefix=("__zh__",))
    with pytest.raises(ConfigError) as caught:
        build(with_pairs(manifest, tagged), pieces, table)
    message = str(caught.value)
    assert "source vocabulary has id 600; ids go from 0 to 599" in message
    assert "target vocabulary gives one id to two pieces" in message
    assert "source vocabulary lacks the prefix '__zh__'" in message
    assert "target vocabulary lacks 3 ids that are not suppressed" in message


TAGGED = LanguagePair(source="en", target="zh-Hans", source_prefix=("▁cat",), target_prefix=("猫",))


@settings(max_examples=300)
@given(text=ANY_VALID_TEXT | st.sampled_from(["</s>", "<unk> cat", "<0x41>", "▁", "猫 cat 猫", ""]))
def test_the_files_own_numbering_and_its_table_agree_on_text(
    manifest: Manifest, pieces: PieceModel, text: str
) -> None:
    tagged = with_pairs(manifest, TAGGED)
    own, table = (build(tagged, pieces, t) for t in (OwnTable(pieces), pieces.table()))
    ids = table.encode(text, TAGGED)
    assert own.encode(text, TAGGED) == ids
    assert own.encode_target(text) == table.encode_target(text)
    assert own.decode(ids) == table.decode(ids)


@settings(max_examples=300)
@given(ids=st.lists(st.integers(-3, 605), max_size=12))
def test_the_files_own_numbering_and_its_table_agree_on_ids(
    manifest: Manifest, pieces: PieceModel, ids: list[int]
) -> None:
    tagged = with_pairs(manifest, TAGGED)
    own, table = (build(tagged, pieces, t) for t in (OwnTable(pieces), pieces.table()))
    assert own.decode(ids) == table.decode(ids)
    assert own.source_pieces() == table.source_pieces()
    assert own.target_pieces() == table.target_pieces()


def test_text_without_a_piece_is_unk_in_both(manifest: Manifest) -> None:
    bare = PieceModel(tiny_spm(byte_fallback=False))
    fitting = replace(manifest, network=replace(manifest.network, vocab_size=len(bare)))
    own, table = (build(fitting, bare, t) for t in (OwnTable(bare), bare.table()))
    ids = own.encode("The 😀 cat", EN_ZH)
    assert ids == table.encode("The 😀 cat", EN_ZH)
    assert ids.count(TINY_TOKENS.unk_id) == 1


def test_text_without_a_piece_has_the_networks_unk_whatever_that_of_the_file_is(
    manifest: Manifest,
) -> None:
    bare = PieceModel(tiny_spm(byte_fallback=False))
    fitting = replace(
        manifest,
        network=replace(manifest.network, vocab_size=len(bare)),
        tokens=replace(manifest.tokens, unk_id=0),
    )
    for table in (OwnTable(bare), bare.table()):
        the, cat = bare.table()["▁The"], bare.table()["▁cat"]
        ids = build(fitting, bare, table).encode("The 😀 cat", EN_ZH)
        assert (ids[0], ids[-2], ids[-1]) == (the, cat, TINY_TOKENS.eos_id)
        assert ids.count(0) == 1


def test_the_numbering_of_another_file_is_a_table_like_any_other(
    manifest: Manifest, pieces: PieceModel
) -> None:
    other = PieceModel(tiny_spm(500))
    smaller = replace(manifest, network=replace(manifest.network, vocab_size=500))
    tokenizer = build(smaller, pieces, OwnTable(other))
    english = "The cat sees the river."
    expected = [other.table().get(piece, 2) for piece in pieces.pieces(english)]
    assert expected != pieces.own_ids(english)
    assert tokenizer.encode(english, EN_ZH) == [*expected, 1]


def test_each_table_is_measured_by_its_own_side(manifest: Manifest, pieces: PieceModel) -> None:
    def problem(source: Mapping[str, int], target: Mapping[str, int], *, size: int = 600) -> str:
        network = replace(
            manifest.network, target_vocab_size=size, share_embeddings=False, tie_output=False
        )
        with pytest.raises(ConfigError) as caught:
            build_tokenizer(
                replace(manifest, network=network),
                source_model=pieces,
                target_model=pieces,
                source_table=source,
                target_table=target,
            )
        return str(caught.value)

    table = pieces.table()
    last = next(piece for piece, index in table.items() if index == 599)
    above, below = {**table, last: 600}, {**table, last: -1}
    twice = {**table, "never written": 5}
    assert problem(above, table) == "source vocabulary has id 600; ids go from 0 to 599"
    assert problem(below, table) == "source vocabulary has id -1; ids go from 0 to 599"
    assert problem(twice, table) == "source vocabulary gives one id to two pieces"
    assert problem(table, above).startswith("target vocabulary has id 600; ids go from 0 to 599;")
    assert problem(table, twice) == "target vocabulary gives one id to two pieces"
    assert "target vocabulary has id 599; ids go from 0 to 598" in problem(table, table, size=599)
    lacks = "target vocabulary lacks 1 ids that are not suppressed, the first is 600"
    assert problem(table, table, size=601) == lacks


def test_an_id_that_is_never_generated_needs_no_piece(
    manifest: Manifest, pieces: PieceModel
) -> None:
    table = pieces.table()
    del table["▁cat"]
    cat = pieces.table()["▁cat"]
    with pytest.raises(ConfigError, match=f"lacks 1 ids .*, the first is {cat}$"):
        build(manifest, pieces, table)
    for silent in ({"suppressed_ids": (0, 2, cat)}, {"start_id": cat}):
        tokens = replace(manifest.tokens, **silent)
        tokenizer = build(replace(manifest, tokens=tokens), pieces, table)
        assert tokenizer.encode("cat", EN_ZH) == [TINY_TOKENS.unk_id, TINY_TOKENS.eos_id]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 599), max_size=24))
def test_whatever_is_written_the_text_of_a_beginning_stays(
    tokenizer: Tokenizer, ids: list[int]
) -> None:
    beginnings = [tokenizer.decode_beginning(ids[:end]) for end in range(len(ids) + 1)]
    for before, after in pairwise(beginnings):
        assert after.startswith(before)
    assert readable(tokenizer.decode(ids)).startswith(beginnings[-1])


def test_a_character_of_several_bytes_is_there_once_all_of_them_are(tokenizer: Tokenizer) -> None:
    *ids, _ = tokenizer.encode_target("The 🦊 sees.")
    beginnings = [tokenizer.decode_beginning(ids[:end]) for end in range(len(ids) + 1)]
    assert any("\ufffd" in tokenizer.decode(ids[:end]) for end in range(len(ids)))
    assert not any("\ufffd" in text for text in beginnings)
    assert beginnings[-1] == "The 🦊 sees."
    assert len(set(beginnings)) < len(beginnings)


def test_behind_bytes_that_are_no_character_nothing_is_readable(tokenizer: Tokenizer) -> None:
    *fox, _ = tokenizer.encode_target("🦊")
    *cat, _ = tokenizer.encode_target("The cat")
    assert tokenizer.decode_beginning([*cat, *fox[-2:], *cat]) == "The cat"
    assert readable("a\ufffdb\ufffd") == "a"

import os
import tempfile
from pathlib import Path
from typing import Literal, get_args

import pytest

from model.errors import DataError
from model.train import stopping
from model.train.config.vocabulary import Normalisation, VocabularyConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.vocabulary import (
    EOS_ID,
    PAD_ID,
    START_ID,
    UNK_ID,
    check_vocabularies,
    load_pieces,
    piece_kind,
    thin,
    train_vocabularies,
    vocabulary_paths,
)
from model.train.stopping import StoppedError
from support.tiny_checkpoint import generated_pairs
from support.tiny_runs import StopAfter

Kind = Literal["bpe", "unigram"]
PAIRS = list(generated_pairs(200))
SOURCE = [source for source, _ in PAIRS]
TARGET = [target for _, target in PAIRS]


def test_a_joint_vocabulary_has_the_special_ids_and_covers_both_sides(tmp_path: Path) -> None:
    found = train_vocabularies(VocabularyConfig(size=450), tmp_path, source=SOURCE, target=TARGET)
    pieces = load_pieces(found.source_path)
    assert found.is_joint
    assert pieces.get_piece_size() == 450
    assert (pieces.pad_id(), pieces.eos_id(), pieces.unk_id()) == (PAD_ID, EOS_ID, UNK_ID)
    assert pieces.bos_id() == -1
    assert START_ID == PAD_ID
    for line in (SOURCE[0], TARGET[0]):
        assert UNK_ID not in pieces.encode(line)


def test_characters_never_seen_are_spelt_in_bytes(tmp_path: Path) -> None:
    found = train_vocabularies(VocabularyConfig(size=450), tmp_path, source=SOURCE, target=TARGET)
    pieces = load_pieces(found.source_path)
    ids = pieces.encode("🦜")
    assert UNK_ID not in ids
    assert pieces.decode(ids) == "🦜"


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_a_rare_character_has_a_piece_where_all_are_covered(
    tmp_path: Path, byte_fallback: bool
) -> None:
    common, rare = "猫看河边的狗", "鹦"
    text = [common] * 400 + [rare]
    size = 7 + 3 + 1 + 256 * byte_fallback  # characters and "▁", special pieces, a merge, bytes
    encoded = {}
    for coverage in (1.0, 0.99):
        config = VocabularyConfig(
            size=size, character_coverage=coverage, byte_fallback=byte_fallback
        )
        found = train_vocabularies(config, tmp_path, source=text, target=text)
        pieces = load_pieces(found.source_path)
        assert "▁" + common[0] in "".join(pieces.encode(common, out_type=str))
        assert UNK_ID not in pieces.encode(common)
        encoded[coverage] = (pieces.encode(rare), pieces.encode(rare, out_type=str)[1:])
    assert encoded[1.0][1] == [rare]
    if byte_fallback:
        assert encoded[0.99][1] == [f"<0x{value:02X}>" for value in rare.encode()]
        assert UNK_ID not in encoded[0.99][0]
    else:
        assert encoded[0.99][0][1:] == [UNK_ID]


@pytest.mark.parametrize("rule", get_args(Normalisation))
def test_every_rule_of_normalisation_is_one_that_sentencepiece_has(
    tmp_path: Path, rule: Normalisation
) -> None:
    config = VocabularyConfig(size=400, normalisation=rule)
    found = train_vocabularies(config, tmp_path, source=SOURCE, target=TARGET)
    folded = load_pieces(found.source_path).normalize("Ａ")
    assert folded == "▁" + {"identity": "Ａ"}.get(rule, "a" if rule.endswith("_cf") else "A")


def test_separate_vocabularies_are_two_files(tmp_path: Path) -> None:
    config = VocabularyConfig(kind="unigram", size=331, is_joint=False)
    found = train_vocabularies(config, tmp_path, source=SOURCE, target=TARGET)
    assert found == vocabulary_paths(config, tmp_path)
    assert not found.is_joint
    source, target = load_pieces(found.source_path), load_pieces(found.target_path)
    assert source.get_piece_size() == target.get_piece_size() == 331
    assert len(target.encode(TARGET[0])) < len(source.encode(TARGET[0]))


def test_the_same_text_gives_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        config = VocabularyConfig(size=450, denormalisation={",": "，"})
        found = train_vocabularies(config, tmp_path / name, source=SOURCE, target=TARGET)
        files.append(found.source_path.read_bytes())
    assert files[0] == files[1]
    assert tempfile.gettempdir().encode() + b"/" not in files[0]


def test_tags_stand_for_no_text_and_symbols_for_their_own(tmp_path: Path) -> None:
    config = VocabularyConfig(size=460, user_symbols=("<ph>",))
    found = train_vocabularies(
        config, tmp_path, source=SOURCE, target=TARGET, tags=(">>de<<", ">>zh<<")
    )
    pieces = load_pieces(found.source_path)
    assert [pieces.id_to_piece(index) for index in (3, 4, 5)] == [">>de<<", ">>zh<<", "<ph>"]
    assert 3 not in pieces.encode(">>de<< cat")
    assert pieces.encode("The<ph>", out_type=str)[-1] == "<ph>"
    check_vocabularies(config, found, tags=(">>de<<",), places=KeyPlaces())
    with pytest.raises(DataError, match=r"^data\.pairs: .*joint\.spm: has no piece '>>fr<<'"):
        check_vocabularies(config, found, tags=(">>fr<<",), places=KeyPlaces())


def test_a_models_kind_is_seen_in_its_scores(tmp_path: Path) -> None:
    for kind in get_args(Kind):
        config = VocabularyConfig(kind=kind, size=400, user_symbols=("<ph>",))
        found = train_vocabularies(config, tmp_path, source=SOURCE, target=TARGET)
        assert piece_kind(load_pieces(found.source_path)) == kind


def test_few_lines_are_spread_over_the_text() -> None:
    lines = [str(number) for number in range(10)]
    assert list(thin(lines, num_lines=10, limit=0)) == lines
    assert list(thin(lines, num_lines=10, limit=20)) == lines
    assert list(thin(lines, num_lines=10, limit=3)) == ["3", "6", "9"]


def test_folded_punctuation_is_put_back_when_pieces_are_joined(tmp_path: Path) -> None:
    config = VocabularyConfig(size=450, denormalisation={",": "，", "!": "！"})
    found = train_vocabularies(config, tmp_path, source=SOURCE, target=TARGET)
    pieces = load_pieces(found.source_path)
    assert pieces.encode("猫，！") == pieces.encode("猫,!")
    assert pieces.decode(pieces.encode("猫,!")) == "猫，！"
    assert pieces.decode(["▁", "猫", ",", "!"]) == "猫，！"


def test_too_little_text_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"the vocabulary cannot be trained: vocabulary\.size is 8000"
    ):
        train_vocabularies(
            VocabularyConfig(size=8000), tmp_path, source=SOURCE[:3], target=TARGET[:3]
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", ["cat " * 2**18 + "c", "cat \u2585"], ids=["long", "sign"])
def test_text_that_sentencepiece_passes_over_is_refused_with_its_limit(
    tmp_path: Path, line: str
) -> None:
    message = r"no line of data\.train has at most 1048576 bytes and no U\+2585; SentencePiece"
    with pytest.raises(DataError, match=rf"source\.spm: .* cannot be trained: {message}"):
        train_vocabularies(
            VocabularyConfig(is_joint=False), tmp_path, source=[line] * 3, target=TARGET
        )
    train_vocabularies(VocabularyConfig(size=266), tmp_path, source=["cat " * 2**18], target=[line])


@pytest.mark.parametrize("kind", get_args(Kind))
def test_text_of_which_normalisation_leaves_nothing_is_refused(tmp_path: Path, kind: Kind) -> None:
    message = r"vocabulary\.normalisation is 'nmt_nfkc', which leaves no character of the text"
    with pytest.raises(DataError, match=message):
        train_vocabularies(
            VocabularyConfig(kind=kind), tmp_path, source=["\u200b"], target=["\u200b\u200b"]
        )
    assert not list(tmp_path.iterdir())


def test_a_missing_model_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.spm"):
        load_pieces(tmp_path / "none.spm")


def test_a_damaged_model_file_is_named(tmp_path: Path) -> None:
    for data, message in ((b"", "is a SentencePiece model without pieces"), (b"\xff", "is not a")):
        path = tmp_path / "damaged.spm"
        path.write_bytes(data)
        with pytest.raises(DataError, match=rf"damaged\.spm: {message}"):
            load_pieces(path)


def test_a_model_file_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"od\xe9")
    folder.mkdir()
    config = VocabularyConfig(size=400)
    found = train_vocabularies(config, folder, source=SOURCE, target=TARGET)
    assert load_pieces(found.source_path).get_piece_size() == 400


def test_a_vocabulary_can_be_stopped_while_its_lines_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "LINES_AT_ONCE", 10)
    num_questions = 2 * len(SOURCE) // 10
    for is_joint in (True, False):
        config = VocabularyConfig(size=300, is_joint=is_joint)
        for num_noes in (0, 1, num_questions // 2 - 1, num_questions - 1):
            with pytest.raises(StoppedError):
                train_vocabularies(
                    config,
                    tmp_path,
                    source=SOURCE,
                    target=TARGET,
                    should_stop=StopAfter(num_noes),
                )
            found = {path.name for path in tmp_path.iterdir()}
            may_be_there = not is_joint and num_noes >= num_questions // 2
            assert found <= ({"source.spm"} if may_be_there else set())

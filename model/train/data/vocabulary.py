"""SentencePiece models, trained on the training split and on nothing else.

Owns the training of pieces and the ids of the special ones: padding, also the start token, is
0, EOS is 1, unknown is 2, so that a piece's id is SentencePiece's own.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import sentencepiece

from model.errors import ConfigError, DataError, TrainingError
from model.text.subwords.pieces import parse_pieces
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.piece_training import train_pieces
from model.train.files import write_whole
from model.train.stopping import ShouldStop, never

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2
START_ID = PAD_ID

_MAX_LINE_BYTES = 2**20  # SentencePiece passes longer lines over without a word, left alone 4,192


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabularies:
    """SentencePiece models of both sides.

    Attributes:
        source_path: The source's model file.
        target_path: The target's; the same file when joint.
    """

    source_path: Path
    target_path: Path

    @property
    def is_joint(self) -> bool:
        """One model serves both sides."""
        return self.source_path == self.target_path


def train_vocabularies(
    config: VocabularyConfig,
    folder: Path,
    *,
    source: Iterable[str],
    target: Iterable[str],
    tags: Sequence[str] = (),
    should_stop: ShouldStop = never,
) -> Vocabularies:
    """Train the SentencePiece models of a configuration into a folder.

    Args:
        config: Kind and size.
        folder: Gets `joint.spm`, or `source.spm` and `target.spm`.
        source: Source lines of the training split.
        target: Target lines of the training split.
        tags: Pieces that stand for no text, on the source side.
        should_stop: Checked often.

    Raises:
        DataError: The text cannot give so many pieces.
        StoppedError: `should_stop` returned true.
        TrainingError: A file cannot be written.
    """
    vocabularies = vocabulary_paths(config, folder)
    if config.is_joint:
        _train(config, vocabularies.source_path, chain(source, target), tags, should_stop)
    else:
        _train(config, vocabularies.source_path, source, tags, should_stop)
        _train(config, vocabularies.target_path, target, (), should_stop)
    return vocabularies


def vocabulary_paths(config: VocabularyConfig, folder: Path) -> Vocabularies:
    """Paths that `train_vocabularies` writes."""
    names = ("joint.spm", "joint.spm") if config.is_joint else ("source.spm", "target.spm")
    return Vocabularies(source_path=folder / names[0], target_path=folder / names[1])


def copy_vocabularies(config: VocabularyConfig, source: Path, destination: Path) -> None:
    """Copy another run's vocabulary files.

    Raises:
        DataError: They are not there.
        TrainingError: A copy cannot be written.
    """
    paths, copies = (vocabulary_paths(config, folder) for folder in (source, destination))
    for path, copy in (
        (paths.source_path, copies.source_path),
        (paths.target_path, copies.target_path),
    ):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}") from error
        write_whole(copy, data)


def check_vocabularies(
    config: VocabularyConfig,
    vocabularies: Vocabularies,
    *,
    tags: Sequence[str],
    places: KeyPlaces,
) -> None:
    """Check that a copied vocabulary has the pieces an experiment needs.

    Raises:
        DataError: A file is missing or damaged, or lacks a tag or a user symbol; the message names
            its key, `data.pairs` or `vocabulary.user_symbols`.
    """
    symbols = dict.fromkeys(config.user_symbols, "vocabulary.user_symbols")
    for path, wanted in (
        (vocabularies.source_path, dict.fromkeys(tags, "data.pairs") | symbols),
        (vocabularies.target_path, symbols),
    ):
        pieces = load_pieces(path)
        for piece, key in wanted.items():
            if pieces.id_to_piece(pieces.piece_to_id(piece)) != piece:
                with places.blame(key):
                    raise DataError(f"{path}: has no piece {piece!r}, which the experiment needs")


def piece_kind(pieces: sentencepiece.SentencePieceProcessor) -> Literal["bpe", "unigram"]:
    """Kind of a model, by its scores: ranks of merges, or log-probabilities."""
    scores: Iterator[float] = map(pieces.get_score, range(pieces.get_piece_size()))
    return "bpe" if all(score == int(score) for score in scores) else "unigram"


def thin(lines: Iterable[str], *, num_lines: int, limit: int) -> Iterator[str]:
    """At most `limit` of `num_lines` lines, evenly spread; all of them when it is 0."""
    share = min(limit or num_lines, num_lines)
    for number, line in enumerate(lines):
        if (number + 1) * share // num_lines > number * share // num_lines:
            yield line


def load_pieces(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a SentencePiece model.

    Raises:
        DataError: The file is missing or damaged.
    """
    try:
        return parse_pieces(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from error


def _train(
    config: VocabularyConfig,
    path: Path,
    lines: Iterable[str],
    tags: Sequence[str],
    should_stop: ShouldStop,
) -> None:
    with _rules_file(config.denormalisation) as rules:
        options = {
            "vocab_size": config.size,
            "model_type": config.kind,
            "character_coverage": config.character_coverage,
            "byte_fallback": config.byte_fallback,
            "split_digits": config.split_digits,
            "normalization_rule_name": config.normalisation,
            "denormalization_rule_tsv": rules,
            "control_symbols": list(tags),
            "user_defined_symbols": list(config.user_symbols),
            "pad_id": PAD_ID,
            "eos_id": EOS_ID,
            "unk_id": UNK_ID,
            "bos_id": -1,
            "max_sentence_length": _MAX_LINE_BYTES,
            "num_threads": 1,
            "minloglevel": 2,
        }
        try:
            data = train_pieces(options, lines, should_stop)
        except TrainingError as error:
            raise DataError(
                f"{path}: the vocabulary cannot be trained: {_problem(config, str(error))}"
            ) from error
        except OSError as error:
            raise DataError(
                f"{path}: the vocabulary cannot be trained: {error.strerror}"
            ) from error
    rules_path = rules.encode()
    if rules_path:  # it is part of the model, and the same text has to give the same bytes
        data = data.replace(rules_path, b"rules.tsv".ljust(len(rules_path), b"_"))
    write_whole(path, data)


def _problem(config: VocabularyConfig, message: str) -> str:
    """SentencePiece's error message in terms of the experiment's keys, where it is a common one."""
    too_high = re.search(r"size too high .* value <= (\d+)", message)
    if too_high:
        return (
            f"vocabulary.size is {config.size}, more than the text supports; it gives at most"
            f" {too_high[1]} pieces"
        )
    too_low = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if too_low:
        return (
            f"vocabulary.size is {config.size}, but the characters alone are {too_low[1]} pieces;"
            " make it larger, or lower vocabulary.character_coverage"
        )
    if "!sentences_.empty()" in message:
        return (
            f"no line of data.train has at most {_MAX_LINE_BYTES} bytes and no U+2585;"
            " SentencePiece learns from no other"
        )
    if "(all_chars_count) > (0)" in message:
        return (
            f"vocabulary.normalisation is {config.normalisation!r}, which leaves no character of"
            " the text; it must leave at least one"
        )
    return message


@contextmanager
def _rules_file(rules: Mapping[str, str]) -> Iterator[str]:
    """SentencePiece's rule file for `rules`, or no file's name when there is none."""
    if not rules:
        yield ""
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.tsv"
        path.write_text("".join(f"{_code(old)}\t{_code(new)}\n" for old, new in rules.items()))
        yield os.fspath(path)


def _code(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)

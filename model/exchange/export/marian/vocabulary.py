"""Vocabularies as Marian reads them: a SentencePiece file, or `token: id` in YAML beside two.

Owns the choice between the two, the files, and which ids Marian never writes by itself. Where the
SentencePiece files number the pieces, they are the vocabularies, and Marian reads text; else the
files are those of an OPUS-MT release, and Marian reads pieces.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.exchange.imports.languages import split_pair
from model.exchange.imports.marian.vocabulary import CONTROL_BYTES, EOS, UNK
from model.text.languages.tags import LanguagePair
from model.text.subwords.normalisation import NormalisedPieces
from model.text.subwords.pieces import PieceModel

_PAD = "<pad>"
_LABEL = re.compile(r">>[A-Za-z0-9_-]{2,40}<<")
_UNQUOTED = re.compile(r"[\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\"\\]")
Kind = Literal["spm", "yml"]


@dataclass(slots=True)
class Vocabularies:
    """Files that an export writes of the text side.

    Attributes:
        kind: SentencePiece files, or tables beside them.
        names: File names of the vocabularies of source and target; may be one twice.
        contents: Files.
        named: Ids of source and target that some token has.
        banned: Target ids that Marian never writes.
        readme: Lines that say which languages there are, as OPUS-MT's releases do.
        problems: What is not expressed, as sentence fragments.
    """

    kind: Kind = "spm"
    names: tuple[str, str] = ("", "")
    contents: dict[str, bytes] = field(default_factory=dict)
    named: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    banned: frozenset[int] = frozenset()
    readme: str = ""
    problems: list[str] = field(default_factory=list)


def marian_vocabularies(checkpoint: Checkpoint) -> Vocabularies:
    """The vocabularies of a checkpoint, and everything in its text side that is in the way."""
    manifest, found = checkpoint.manifest, Vocabularies()
    cut = [
        pieces.inner if isinstance(pieces, NormalisedPieces) else pieces
        for pieces in checkpoint.tokenizer.models
    ]
    models = [pieces for pieces in cut if isinstance(pieces, PieceModel)]
    if len(models) < 2:
        found.problems.append("the pieces are those of Moses' words (only of SentencePiece)")
        return found
    if any(pair.source_prompt or pair.target_prefix for pair in manifest.pairs):
        found.problems.append(
            "pairs have a source_prompt or a target_prefix (only a source_prefix)"
        )
    tokens, tokenizer = manifest.tokens, checkpoint.tokenizer
    sides = [
        {**pieces, tokens.eos_id: EOS, tokens.unk_id: UNK}
        for pieces in (tokenizer.source_pieces(), tokenizer.target_pieces())
    ]
    is_own = all(_is_own(model, table) for model, table in zip(models, sides, strict=True))
    if is_own:
        _add_pieces(found, manifest, models)
    else:
        _add_tables(found, manifest, models, sides)
    return found


def _is_own(model: PieceModel, table: Mapping[int, str]) -> bool:
    """Whether a SentencePiece file numbers its pieces as the table does."""
    size = len(model)
    return all(index < size and model.own_piece(index) == piece for index, piece in table.items())


def _add_pieces(found: Vocabularies, manifest: Manifest, models: list[PieceModel]) -> None:
    """SentencePiece files as vocabularies, called after the languages of a single direction."""
    if manifest.normalisation is not None:
        found.problems.append(
            f"normalisation is {manifest.normalisation!r} (only none, where SentencePiece files are"
            " the vocabularies)"
        )
    if any(pair.source_prefix for pair in manifest.pairs):
        found.problems.append(
            "pairs have a source_prefix (only none, where SentencePiece files are the vocabularies)"
        )
    stem = _stem(manifest.pairs)
    if models[0].data == models[1].data:
        found.names = (f"vocab{stem}.spm",) * 2
    else:
        found.names = f"srcvocab{stem}.spm", f"trgvocab{stem}.spm"
    found.contents |= {name: model.data for name, model in zip(found.names, models, strict=True)}
    found.named = frozenset(range(len(models[0]))), frozenset(range(len(models[1])))
    ids = (models[1].own_id(piece) for piece in (UNK, *CONTROL_BYTES))
    found.banned = frozenset(index for index in ids if index is not None)


def _stem(pairs: tuple[LanguagePair, ...]) -> str:
    """`.ende`, which imports read the direction from; nothing where that would say another."""
    if len(pairs) != 1:
        return ""
    pair = pairs[0]
    code = "".join(tag.replace("-", "_").lower() for tag in (pair.source, pair.target))
    return f".{code}" if split_pair(code) == (pair.source, pair.target) else ""


def _add_tables(
    found: Vocabularies, manifest: Manifest, models: list[PieceModel], sides: list[dict[int, str]]
) -> None:
    """The files of an OPUS-MT release, whose README.md says which languages it has."""
    found.kind = "yml"
    if manifest.normalisation != "opus-mt":
        found.problems.append(
            f"normalisation is {manifest.normalisation!r} (only 'opus-mt', where a table numbers"
            " the pieces)"
        )
    pad = manifest.tokens.pad_id
    rows = manifest.network.vocab_size, manifest.network.output_size
    for table, num_rows in zip(sides, rows, strict=True):
        if pad != num_rows - 1:
            table[pad] = _PAD  # to Marian an id 0 without a name is EOS, and an id 1 unknown text
        if len(set(table.values())) < len(table):
            found.problems.append("a table gives one piece to two ids (only one)")
    is_shared = sides[0] == sides[1]
    found.names = ("vocab.yml",) * 2 if is_shared else ("source.vocab.yml", "target.vocab.yml")
    found.contents |= {
        name: yaml_table(table).encode("utf-8")
        for name, table in zip(found.names, sides, strict=True)
    }
    found.contents |= {"source.spm": models[0].data, "target.spm": models[1].data}
    found.named = frozenset(sides[0]), frozenset(sides[1])
    found.banned = frozenset({manifest.tokens.unk_id})
    found.readme = _languages(manifest.pairs, found)


def _languages(pairs: tuple[LanguagePair, ...], found: Vocabularies) -> str:
    """What a release says of its languages."""
    labels = {piece for pair in pairs for piece in pair.source_prefix}
    is_usual = all(len(pair.source_prefix) < 2 for pair in pairs)
    if not is_usual or any(_LABEL.fullmatch(label) is None for label in labels):
        found.problems.append("pairs have a source_prefix that is no `>>xx<<` (only that)")
    codes = [sorted({getattr(pair, side) for pair in pairs}) for side in ("source", "target")]
    lines = [f"* source language(s): {' '.join(codes[0])}"]
    lines.append(f"* target language(s): {' '.join(codes[1])}")
    if labels:
        lines.append("* a sentence initial language token is required in the form of `>>id<<`")
        lines.append(f"* valid target language labels: {' '.join(sorted(labels))}")
    return "\n".join(lines) + "\n"


def yaml_table(table: Mapping[int, str]) -> str:
    """`"token": id`, by id, quoted so that no token is a word of YAML."""
    return "".join(f'"{_escaped(table[index])}": {index}\n' for index in sorted(table))


def _escaped(token: str) -> str:
    return _UNQUOTED.sub(lambda match: f"\\u{ord(match[0]):04x}", token)

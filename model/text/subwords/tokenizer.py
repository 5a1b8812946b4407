"""Text to token ids and back: pieces from SentencePiece or BPE, ids by its numbering or a table.

Owns the pieces and ids of both sides and the special tokens around a segment. It does not read
files (`model.text.subwords.pieces` reads the bytes of SentencePiece's, `model.text.subwords.moses`
those of BPE, `model.checkpoint.tokenizer` the files of a checkpoint), does not split text
(`model.text.sentences.segmenter`) and it does not know how long a segment may be
(`model.text.pipeline`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

from model.config import SpecialTokens
from model.errors import ConfigError, shown
from model.text.languages.tags import LanguagePair
from model.text.subwords.pieces import OwnTable, PieceModel, Pieces

_SPACE = "\u2581"
"""Stands for a space in pieces."""
_UNREADABLE = "\ufffd"
_BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))


class _TableSide:
    """Text and ids of one side by a table that stands apart from the file of the pieces.

    Args:
        pieces: Of the side.
        table: Piece → id.
        specials: Ids that no text has.
    """

    def __init__(self, pieces: Pieces, table: Mapping[str, int], specials: Set[int]) -> None:
        self._model = pieces
        self._ids = {piece: index for piece, index in table.items() if index not in specials}
        self._pieces = {index: piece for piece, index in self._ids.items()}

    def __repr__(self) -> str:
        return f"<TableSide of {len(self._ids)} pieces>"

    def ids(self, text: str, *, unknown: int) -> list[int]:
        """Ids of a text, `unknown` for a piece without one."""
        return [self._ids.get(piece, unknown) for piece in self._model.pieces(text)]

    def text(self, ids: Iterable[int]) -> str:
        """The text of ids; those that stand for no text are left out."""
        pieces = self._pieces
        text = self._model.text([pieces[index] for index in ids if index in pieces])
        # SentencePiece leaves a piece that its file lacks as it is: a table may join two files.
        return text.replace(_SPACE, " ").strip(" ") if _SPACE in text else text

    def piece(self, index: int) -> str:
        """The piece of an id; "" if it has none."""
        return self._pieces.get(index, "")

    def named(self) -> dict[int, str]:
        """The piece of every id that text uses."""
        return dict(self._pieces)


class _OwnSide:
    """The same by the numbering of the SentencePiece file itself, which needs no table."""

    def __init__(self, pieces: PieceModel, specials: Set[int]) -> None:
        self._model = pieces
        self._specials = specials

    def __repr__(self) -> str:
        return f"<OwnSide of {len(self._model)} pieces>"

    def ids(self, text: str, *, unknown: int) -> list[int]:
        """Ids of a text, `unknown` for a piece without one."""
        specials = self._specials
        return [unknown if index in specials else index for index in self._model.own_ids(text)]

    def text(self, ids: Iterable[int]) -> str:
        """The text of ids; those that stand for no text are left out."""
        specials, size = self._specials, len(self._model)
        return self._model.own_text(
            [index for index in ids if 0 <= index < size and index not in specials]
        )

    def piece(self, index: int) -> str:
        """The piece of an id; "" if it has none."""
        is_text = 0 <= index < len(self._model) and index not in self._specials
        return self._model.own_piece(index) if is_text else ""

    def named(self) -> dict[int, str]:
        """The piece of every id that text uses."""
        every = range(len(self._model))
        return {
            index: self._model.own_piece(index) for index in every if index not in self._specials
        }


class Tokenizer:
    """Encodes source segments and decodes target ids of one checkpoint.

    No text can be encoded to a special token or to a language tag: those ids are taken out of
    the table that text is looked up in, so `</s>` typed by a user is text.

    Attributes:
        unk_id: Id of what the vocabulary cannot say.
        rare_ids: Source ids of text that the vocabulary has no piece for: unknown, and bytes.

    Args:
        tokens: Ids that are not text.
        pairs: Directions, whose prefixes the tables must have.
        source_size: Ids of the source go from 0 to `source_size` - 1.
        target_size: The same for the target.
        source_model: Pieces of the source.
        target_model: Those of the target; may be the same object.
        source_table: Piece → id of the source.
        target_table: Piece → id of the target; may be the same object.

    Attributes:
        models: What cuts the text of source and target into pieces.

    Raises:
        ConfigError: A table does not fit the rest; the message lists all problems.
    """

    def __init__(
        self,
        *,
        tokens: SpecialTokens,
        pairs: tuple[LanguagePair, ...],
        source_size: int,
        target_size: int,
        source_model: Pieces,
        target_model: Pieces,
        source_table: Mapping[str, int],
        target_table: Mapping[str, int],
    ) -> None:
        problems = [
            *_side_problems("source", source_table, source_size, pairs),
            *_side_problems("target", target_table, target_size, pairs),
            *_nameless_problems(target_table, target_size, tokens),
        ]
        if problems:
            raise ConfigError("; ".join(problems))
        self.models = (source_model, target_model)
        self._settles_by_piece = isinstance(target_model, PieceModel)
        self._tokens = tokens
        self.unk_id = tokens.unk_id
        self.rare_ids = frozenset({tokens.unk_id}.union(_byte_ids(source_table)))
        self._source_end = [tokens.eos_id] if tokens.has_source_eos else []
        # By prefix and not by pair: a network of 200 languages has 40,000 pairs.
        self._source_prefixes = {
            prefix: [source_table[piece] for piece in prefix]
            for prefix in {pair.source_start for pair in pairs}
        }
        self._target_prefixes = {
            prefix: [target_table[piece] for piece in prefix]
            for prefix in {pair.target_prefix for pair in pairs}
        }
        specials = {tokens.pad_id, tokens.eos_id, tokens.unk_id, tokens.start_id}
        self._unwritable = specials.union(tokens.suppressed_ids)
        tags = {source_table[piece] for pair in pairs for piece in pair.source_prefix}
        source_specials = specials | tags
        target_specials = specials.union(*self._target_prefixes.values())
        self._source = _side(source_model, source_table, source_specials, tokens.unk_id)
        self._target = _side(target_model, target_table, target_specials, tokens.unk_id)

    def __repr__(self) -> str:
        return f"<Tokenizer {self._source!r} {self._target!r}>"

    def encode(self, text: str, pair: LanguagePair) -> list[int]:
        """Source ids of a segment: the pair's prompt and prefix, pieces, EOS unless there is none.

        Args:
            text: Any text without lone surrogates; a piece without an id becomes `unk_id`.
            pair: One of the tokenizer's directions.
        """
        ids = self._source.ids(text, unknown=self._tokens.unk_id)
        return [*self._source_prefixes[pair.source_start], *ids, *self._source_end]

    def num_source_extras(self, pair: LanguagePair) -> int:
        """How many source ids of a segment stand for no text: prompt, prefix and EOS."""
        return len(self._source_prefixes[pair.source_start]) + len(self._source_end)

    @property
    def num_source_ends(self) -> int:
        """How many of these stand behind the text: 1 for EOS, or 0."""
        return len(self._source_end)

    @property
    def num_forced_first(self) -> int:
        """How many target tokens stand before the text of every translation: 0 or 1."""
        return int(self._tokens.forced_first_id is not None)

    def encode_target(self, text: str) -> list[int]:
        """Target ids of a reference, with EOS and without start token and prefix."""
        return [*self._target.ids(text, unknown=self._tokens.unk_id), self._tokens.eos_id]

    def is_writable(self, target_ids: Iterable[int]) -> bool:
        """Whether a search can choose all of these ids inside a translation."""
        return self._unwritable.isdisjoint(target_ids)

    def target_prefix(self, pair: LanguagePair) -> list[int]:
        """What the decoder is given before the first generated token: start, then tags."""
        return [self._tokens.start_id, *self._target_prefixes[pair.target_prefix]]

    def decode(self, target_ids: Iterable[int]) -> str:
        """The text of target ids; special tokens, tags and ids without a piece are left out."""
        return self._target.text(target_ids)

    def decode_beginning(self, target_ids: Iterable[int]) -> str:
        """The text of target ids that others follow: what stays of it, whichever these are.

        It ends before bytes that are no character, or none yet. Where words are joined from pieces
        that say where they end, it ends before the last word.
        """
        text = readable(self.decode(target_ids))
        return text if self._settles_by_piece else text[: max(0, text.rfind(" "))]

    def source_tokens(self, ids: Sequence[int], pair: LanguagePair) -> list[str | None]:
        """The piece of each source id of a segment, as of `encode`.

        None stands for no text: a prompt, tags, EOS. An id without a piece, `unk_id`, has "".
        """
        before = self.num_source_extras(pair) - self.num_source_ends
        after = len(ids) - self.num_source_ends
        return [
            self._source.piece(index) if before <= place < after else None
            for place, index in enumerate(ids)
        ]

    def target_tokens(self, ids: Iterable[int]) -> list[str | None]:
        """The piece of each target id; "" of one without a piece."""
        return [self._target.piece(index) for index in ids]

    def source_pieces(self) -> dict[int, str]:
        """The piece of every source id that text and tags use; special tokens have none."""
        return _named(self._source, self._source_prefixes)

    def target_pieces(self) -> dict[int, str]:
        """The piece of every target id that text and tags use; special tokens have none."""
        return _named(self._target, self._target_prefixes)


def readable(text: str) -> str:
    """A text up to the first character that stands for bytes which are none."""
    end = text.find(_UNREADABLE)
    return text if end < 0 else text[:end]


def _byte_ids(table: Mapping[str, int]) -> Iterator[int]:
    """Ids of the bytes that stand for characters without a piece, of a table that has them."""
    return (table[piece] for piece in _BYTE_PIECES if piece in table)


def _side(
    pieces: Pieces, table: Mapping[str, int], specials: Set[int], unknown: int
) -> _TableSide | _OwnSide:
    if isinstance(table, OwnTable) and table.pieces is pieces and table.pieces.unk_id == unknown:
        return _OwnSide(table.pieces, specials)
    return _TableSide(pieces, table, specials)


def _named(
    side: _TableSide | _OwnSide, prefixes: Mapping[tuple[str, ...], list[int]]
) -> dict[int, str]:
    pieces = side.named()
    for prefix, ids in prefixes.items():
        pieces |= dict(zip(ids, prefix, strict=True))
    return pieces


def _side_problems(
    side: str, table: Mapping[str, int], size: int, pairs: tuple[LanguagePair, ...]
) -> list[str]:
    """Ids that a side cannot have, and prefixes that it lacks."""
    ids, problems = _ids_of(table), []
    wrong = next((index for index in ids if not 0 <= index < size), None)
    if wrong is not None:
        problems.append(f"{side} vocabulary has id {wrong}; ids go from 0 to {size - 1}")
    if len(ids) < len(table):
        problems.append(f"{side} vocabulary gives one id to two pieces")
    start = "source_start" if side == "source" else "target_prefix"
    prefixes = {piece for pair in pairs for piece in getattr(pair, start)}
    problems += [
        f"{side} vocabulary lacks the prefix {shown(piece)}"
        for piece in sorted(prefixes)
        if piece not in table
    ]
    return problems


def _nameless_problems(table: Mapping[str, int], size: int, tokens: SpecialTokens) -> list[str]:
    """Ids that may be generated and have no piece."""
    silent = {
        *tokens.suppressed_ids,
        tokens.pad_id,
        tokens.eos_id,
        tokens.unk_id,
        tokens.start_id,
    }
    named = _ids_of(table)
    nameless = [index for index in range(size) if index not in named and index not in silent]
    problem = f"target vocabulary lacks {len(nameless)} ids that are not suppressed, the first is"
    return [f"{problem} {nameless[0]}"] if nameless else []


def _ids_of(table: Mapping[str, int]) -> Collection[int]:
    return range(len(table)) if isinstance(table, OwnTable) else set(table.values())

"""A SentencePiece file made again of tokenizer.json, which the library `tokenizers` reads.

transformers 5 saves a fine-tuned NLLB, mBART-50 or T5 with that file alone. Owns which descriptions
say all that SentencePiece needs. It does not own how its file is written
(`model.exchange.piece_file`), nor what a family's numbering of the pieces is: they stand in the
order that SentencePiece gives them.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence

from model.errors import ConfigError, shown
from model.exchange.piece_file import FilePiece, PieceKind, piece_file
from model.text.subwords.pieces import PieceModel

FAST_TOKENIZER = "tokenizer.json"
_SPACE = "\u2581"
_FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]
"""What fairseq's numbering begins with, in place of these three."""
_UNKNOWN = "<unk>"
_OWN = [_UNKNOWN, "<s>", "</s>"]
_CONTROLS = {"<s>", "</s>", "<pad>"}
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_SINGLE_SPACES = (" ", _SPACE)
_PREFIXED = {"always": True, "first": True, "never": False}
_MAX_CHARACTERS = 1024
"""Of a piece; SentencePiece learns none of more than 16 unless it is told to."""
_MAX_SCORE = 2.0**100


def rebuilt_pieces(described: object) -> PieceModel:
    """The SentencePiece file that tokenizer.json was made of, but for what it did not keep.

    Lost are pieces that no text has and what was only of use in training. Tokens behind the
    pieces, as of languages, are left out, as no SentencePiece file has them.

    Args:
        described: The JSON of tokenizer.json.

    Raises:
        ConfigError: It describes what no SentencePiece file says.
    """
    if not isinstance(described, dict):
        raise ConfigError("it is no JSON object")
    model = described.get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if not isinstance(model, dict) or kind not in {"Unigram", "BPE"}:
        raise ConfigError(f"its model is {shown(kind)}, not Unigram or BPE")
    scores = _unigrams(model) if kind == "Unigram" else _byte_pairs(model)
    added = {text: token.get("special") is True for text, token in added_tokens(described).items()}
    data = piece_file(
        _typed(_own_order(_without_tail(scores, added)), added),
        "unigrams" if kind == "Unigram" else "byte pairs",
        charsmap=_charsmap(described),
        has_prefix=_has_prefix(described),
    )
    return PieceModel(data)


def not_rebuilt(error: ConfigError) -> str:
    """Behind the problem that a SentencePiece file is missing: why, and what to do."""
    return (
        f", and none can be made of {FAST_TOKENIZER} ({error}); copy it from the model that this"
        " one was made of"
    )


def added_tokens(described: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """What tokenizer.json cuts out of texts before they become pieces, by its text."""
    listed = described.get("added_tokens")
    entries = listed if isinstance(listed, list) else []
    return {str(entry.get("content")): entry for entry in entries if isinstance(entry, dict)}


def _unigrams(model: Mapping[str, object]) -> dict[str, float]:
    """Scores of the pieces, in their order."""
    listed, found = model.get("vocab"), dict[str, float]()
    for entry in listed if isinstance(listed, list) else ():
        piece, score = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
        if not isinstance(piece, str) or not isinstance(score, int | float):
            raise ConfigError(f"its vocab has {shown(entry)}, which is no piece with its score")
        if not abs(score) < _MAX_SCORE:
            raise ConfigError(f"its vocab has {shown(entry)}, whose score is out of all bounds")
        found[piece] = float(score)
    if not found:
        raise ConfigError("its vocab has no pieces")
    return found


def _byte_pairs(model: Mapping[str, object]) -> dict[str, float]:
    """Scores of the pieces, in their order: what is merged first has the highest.

    SentencePiece merges whatever two pieces are a third, so that all such pairs must be merges.
    """
    listed = model.get("vocab")
    if not isinstance(listed, dict) or not listed:
        raise ConfigError("its vocab has no pieces")
    if any(type(index) is not int for index in listed.values()):
        raise ConfigError("its vocab has what is no id")
    ordered = sorted(listed, key=lambda piece: int(listed[piece]))
    merges = _merges(model)
    ranks: dict[str, int] = {}
    for left, right in merges:
        ranks.setdefault(left + right, len(ranks))
    known, pairs = set(ordered) - {*_FAIRSEQ}, set(merges)
    for piece in ordered:
        for left, right in _splits(piece):
            if left in known and right in known and (left, right) not in pairs:
                raise ConfigError(
                    f"its merges lack {shown(left)} with {shown(right)}, which SentencePiece merges"
                )
    return {piece: -float(ranks.get(piece, len(ranks))) for piece in ordered}


def _merges(model: Mapping[str, object]) -> list[tuple[str, str]]:
    """Pairs, the first ones first; old files have each as one text with a space."""
    listed, found = model.get("merges"), []
    for entry in listed if isinstance(listed, list) else ():
        pair = entry.split(" ") if isinstance(entry, str) else entry
        if not isinstance(pair, list) or [type(part) for part in pair] != [str, str]:
            raise ConfigError(f"its merges have {shown(entry)}, which is no pair")
        found.append((pair[0], pair[1]))
    return found


def _splits(piece: str) -> Iterator[tuple[str, str]]:
    return ((piece[:place], piece[place:]) for place in range(1, len(piece)))


def _without_tail(scores: Mapping[str, float], added: Mapping[str, bool]) -> dict[str, float]:
    """The pieces without the tokens behind them: none of those has been learnt from text."""
    names = list(scores)
    while names and names[-1] in added and names[-1] not in _FAIRSEQ:
        names.pop()
    return {name: scores[name] for name in names}


def _own_order(scores: Mapping[str, float]) -> dict[str, float]:
    """The pieces in SentencePiece's order, where they stand in fairseq's."""
    names = list(scores)
    if names[: len(_FAIRSEQ)] != _FAIRSEQ:
        return dict(scores)
    ordered = [*_OWN, *names[len(_FAIRSEQ) :]]
    return {piece: scores[piece] for piece in ordered}


def _typed(scores: Mapping[str, float], added: Mapping[str, bool]) -> Sequence[FilePiece]:
    """Pieces with their types, of which tokenizer.json keeps what it needs itself.

    What is unknown goes by its name: `T5Tokenizer` of transformers 5 writes one and the same id for
    it into all files.

    Raises:
        ConfigError: Nothing stands for what is unknown.
    """
    if _UNKNOWN not in scores:
        raise ConfigError(f"its vocab lacks {_UNKNOWN}")
    has_bytes = sum(map(bool, map(_BYTE.fullmatch, scores))) == 256
    found = []
    for text, score in scores.items():
        if not 0 < len(text) <= _MAX_CHARACTERS:
            raise ConfigError(
                f"its vocab has a piece of {len(text)} characters; 1 to {_MAX_CHARACTERS} are"
                " allowed"
            )
        kind = PieceKind.NORMAL
        if text == _UNKNOWN:
            kind = PieceKind.UNKNOWN
        elif has_bytes and _BYTE.fullmatch(text):
            kind = PieceKind.BYTE
        elif text in added:
            kind = PieceKind.CONTROL if added[text] else PieceKind.USER_DEFINED
        elif text in _CONTROLS:
            kind = PieceKind.CONTROL
        found.append(FilePiece(text=text, score=score, kind=kind))
    return found


def _charsmap(described: Mapping[str, object]) -> bytes:
    """How characters are replaced, compiled; nothing where they stay.

    Raises:
        ConfigError: A text is changed in another way, too.
    """
    charsmap = b""
    for step in _steps(described.get("normalizer"), "normalizers"):
        if step.get("type") == "Precompiled":
            try:
                charsmap = base64.b64decode(str(step.get("precompiled_charsmap")), validate=True)
            except (binascii.Error, ValueError) as error:
                raise ConfigError("its precompiled_charsmap is not base64") from error
        elif not _is_of_spaces(step):
            raise ConfigError(f"its normalizer has {shown(step.get('type'))}")
    return charsmap


def _is_of_spaces(step: Mapping[str, object]) -> bool:
    """Whether a step does what SentencePiece does with spaces anyway."""
    if step.get("type") == "Replace":
        return step.get("pattern") == {"Regex": " {2,}"} and step.get("content") in _SINGLE_SPACES
    return step.get("type") == "Strip"


def _has_prefix(described: Mapping[str, object]) -> bool:
    """Whether every text gets a space before it.

    Raises:
        ConfigError: Words are found otherwise than by spaces.
    """
    steps = list(_steps(described.get("pre_tokenizer"), "pretokenizers"))
    others = [step for step in steps if step.get("type") not in {"WhitespaceSplit", "Metaspace"}]
    spaces = [step for step in steps if step.get("type") == "Metaspace"]
    if others or len(spaces) != 1 or spaces[0].get("replacement") != _SPACE:
        found = [step.get("type") for step in steps]
        raise ConfigError(f"its pre_tokenizer is {shown(found)}")
    scheme = spaces[0].get("prepend_scheme")
    if scheme is None:  # as older versions say it
        return spaces[0].get("add_prefix_space") is not False
    if not isinstance(scheme, str) or scheme not in _PREFIXED:
        raise ConfigError(f"its prepend_scheme is {shown(scheme)}")
    return _PREFIXED[scheme]


def _steps(value: object, parts: str) -> Iterator[Mapping[str, object]]:
    """A step, or those of a sequence of steps; nothing where there is none."""
    if not isinstance(value, dict):
        return
    if value.get("type") != "Sequence":
        yield value
        return
    listed = value.get(parts)
    for step in listed if isinstance(listed, list) else ():
        if isinstance(step, dict):
            yield step

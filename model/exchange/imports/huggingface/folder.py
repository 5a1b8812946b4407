"""Folders of Hugging Face's transformers: their descriptions, tokenizer files, name and licence.

Owns the reading of small files, and of values of config.json with the problems they have. It does
not own the weights (`model.exchange.imports.huggingface.weights`) or what a family's values mean.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from model.checkpoint.description.consistency import MAX_LAYERS, MAX_WIDTH
from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.files.verification import MAX_TOKENIZER_BYTES, MAX_VOCABULARY_BYTES
from model.checkpoint.manifest import Licence
from model.errors import CheckpointError, ConfigError, ForeignModelError, shown
from model.exchange.imports.fast_tokenizer import (
    FAST_TOKENIZER,
    added_tokens,
    not_rebuilt,
    rebuilt_pieces,
)
from model.exchange.imports.git_lfs import POINTER_PROBLEM, is_pointer
from model.exchange.model_card import card_licence
from model.text.subwords.pieces import PieceModel

MAX_JSON_BYTES = 16 * 2**20
MAX_TRAINED_LENGTH = 512
"""Tokens of a sentence, where a description says only how many positions there are: no network of
these families learned longer ones."""

_START = "decoder_start_token_id"
_CACHED = re.compile(r"models--(?:(\w[\w.-]*?)--)?(\w[\w.-]*)")
"""Folder of a repository in the hub's cache, whose owner and name have no two hyphens in a row."""

T = TypeVar("T")


def model_type(source: Path) -> str | None:
    """What config.json calls its family; None where there is none; never raises."""
    try:
        value = parse_json(read_limited(source / "config.json", MAX_JSON_BYTES))
    except (CheckpointError, ConfigError, OSError, ValueError):
        return None
    found = value.get("model_type") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def folder_name(path: Path) -> str:
    """What a model is called: as its folder, or on the hub where that is the hub's cache."""
    return _cached_repository(path).rpartition("/")[2] or path.resolve().name


def _cached_repository(path: Path) -> str:
    """`OWNER/NAME` of a folder of the hub's cache, which has no name of its own."""
    path = path.resolve()
    is_snapshot = path.parent.name == "snapshots"
    match = _CACHED.fullmatch(path.parent.parent.name) if is_snapshot else None
    return "/".join(filter(None, match.groups())) if match else ""


class HuggingFaceFolder:
    """The small files of a folder.

    Attributes:
        path: The folder.
        problems: What is wrong so far; families add theirs, and `raise_problems` tells all.
        has_all_sizes: Whether every integer that was asked for is there; where one is not, another
            number stands in for it, and shapes mean nothing.
        config: config.json.
        generation: generation_config.json, or nothing.
        tokenizer: tokenizer_config.json, or nothing.

    Raises:
        ForeignModelError: config.json is missing, or a file is no JSON.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.has_all_sizes = True
        self.config = self.json("config.json")
        self.generation = self.json("generation_config.json", is_needed=False)
        self.tokenizer = self.json("tokenizer_config.json", is_needed=False)
        self.raise_problems()

    def __repr__(self) -> str:
        return f"<HuggingFaceFolder {str(self.path)!r}>"

    def raise_problems(self) -> None:
        """Raise if there is any problem.

        Raises:
            ForeignModelError: With all of them.
        """
        if self.problems:
            raise ForeignModelError(self.path, list(dict.fromkeys(self.problems)))

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.path / name).is_file()

    def data(self, name: str, *, max_bytes: int = MAX_TOKENIZER_BYTES) -> bytes:
        """A small file; a problem, and nothing, where it cannot be read."""
        try:
            data = read_limited(self.path / name, max_bytes)
        except CheckpointError as error:
            self.problems.append(f"{name} {error.problem}")
            return b""
        if is_pointer(data):
            self.problems.append(f"{name} {POINTER_PROBLEM}")
            return b""
        return data

    def pieces(self, name: str) -> tuple[bytes, PieceModel | None]:
        """A SentencePiece file and its pieces; a problem, and none, where it is no such file.

        It is made of tokenizer.json where that alone is there.
        """
        if self.has(FAST_TOKENIZER) and not self.has(name):
            return self._rebuilt_pieces(name)
        num_problems, data = len(self.problems), self.data(name)
        if len(self.problems) == num_problems:
            try:
                return data, PieceModel(data)
            except ConfigError as error:
                self.problems.append(f"{name} {error}")
        return data, None

    def _rebuilt_pieces(self, name: str) -> tuple[bytes, PieceModel | None]:
        num_problems, described = len(self.problems), self._fast_tokenizer
        if len(self.problems) == num_problems:
            try:
                pieces = rebuilt_pieces(described)
            except ConfigError as error:
                self.problems.append(f"{name} is missing{not_rebuilt(error)}")
            else:
                return pieces.data, pieces
        return b"", None

    def json(
        self, name: str, *, is_needed: bool = True, max_bytes: int = MAX_JSON_BYTES
    ) -> dict[str, object]:
        """An object of JSON; a problem, and an empty one, where there is none that can be read."""
        if not is_needed and not self.has(name):
            return {}
        num_problems, data = len(self.problems), self.data(name, max_bytes=max_bytes)
        try:
            value = parse_json(data) if len(self.problems) == num_problems else {}
        except ConfigError as error:
            self.problems.append(f"{name} {error}")
            value = {}
        if not isinstance(value, dict):
            self.problems.append(f"{name} is no JSON object")
            value = {}
        return value

    @cached_property
    def added_tokens(self) -> Mapping[str, object] | None:
        """What tokenizer.json cuts out of texts before SentencePiece sees them, with its ids.

        None without that file.
        """
        if not self.has(FAST_TOKENIZER):
            return None
        return {text: token.get("id") for text, token in added_tokens(self._fast_tokenizer).items()}

    @cached_property
    def _fast_tokenizer(self) -> dict[str, object]:
        return self.json(FAST_TOKENIZER, max_bytes=MAX_VOCABULARY_BYTES)

    def vocabulary(self, name: str) -> dict[str, int]:
        """A table from pieces to ids; a problem, and an empty one, where it is something else."""
        value = self.json(name, max_bytes=MAX_VOCABULARY_BYTES)
        if any(type(index) is not int for index in value.values()):
            self.problems.append(f"{name} is no JSON object from pieces to integers")
            return {}
        return {piece: index for piece, index in value.items() if isinstance(index, int)}

    def integer(self, name: str, *, default: int | None = None) -> int:
        """An integer of config.json; a problem, and 1, where there is none."""
        value = self.config.get(name, default)
        if type(value) is int:
            return value
        self.problems.append(f"config.json: {name} {_state(value)}; it must be an integer")
        self.has_all_sizes = False
        return 1

    def size(self, name: str, default: int | None = None) -> int:
        """A width, or a number of rows or heads; a problem, and 1, if it is none."""
        return self._bounded(name, default, MAX_WIDTH)

    def layer_count(self, name: str, default: int | None = None) -> int:
        """A number of layers; a problem, and 1, if it is none."""
        return self._bounded(name, default, MAX_LAYERS)

    def flag(self, name: str, *, default: bool) -> bool:
        """A truth value of config.json; a problem where it is something else."""
        value = self.config.get(name, default)
        if isinstance(value, bool):
            return value
        self.problems.append(f"config.json: {name} {_state(value)}; it must be true or false")
        return default

    def choice(self, name: str, choices: Mapping[str, T], default: str) -> T:
        """What a word of config.json stands for; a problem where it is another word."""
        value = self.config.get(name, default)
        if isinstance(value, str) and value in choices:
            return choices[value]
        self.problems.append(
            f"config.json: {name} {_state(value)}; only {', '.join(choices)} can be converted"
        )
        return choices[default]

    def only(self, name: str, *known: object) -> None:
        """Refuse a value of config.json that is none of those; left out, it is the first."""
        value = self.config.get(name, known[0])
        if not any(value == item and type(value) is type(item) for item in known):
            wanted = " or ".join(map(repr, known))
            self.problems.append(
                f"config.json: {name} is {value!r}; only {wanted} can be converted"
            )

    def described(self, build: Callable[[], T]) -> T | None:
        """What config.json describes; None, and a problem, where there can be none such."""
        try:
            return build()
        except ConfigError as error:
            self.problems.append(f"config.json: {error}")
            return None

    def setting(self, name: str) -> object:
        """What generation_config.json says, or else config.json, which older folders keep it in."""
        return self.generation.get(name, self.config.get(name))

    @property
    def forced_first(self) -> object:
        """What every target begins with: the id of a token, if it is one.

        As transformers has it: config.json counts where no file describes the search.
        """
        is_described = self.has("generation_config.json")
        return (self.generation if is_described else self.config).get("forced_bos_token_id")

    def start_id(self, *, default: int | None = None) -> int:
        """The token that a target starts from; a problem, and 0, where it is no integer.

        As transformers has it: generation_config.json goes before config.json, which since its
        version 5 need not say.

        Args:
            default: Where neither says; None makes that a problem.
        """
        file, value = "generation_config.json", self.generation.get(_START)
        if value is None:
            file, value = "config.json", self.config.get(_START)
        value = default if value is None else value
        if type(value) is int:
            return value
        self.problems.append(f"{file}: {_START} {_state(value)}; it must be an integer")
        return 0

    def only_start(self, index: int) -> None:
        """Refuse a token that a target starts from if it is another; left out, it is this one."""
        found = self.start_id(default=index)
        if found != index:
            self.problems.append(f"{_START} is {found}; only {index} can be converted")

    def suppressed(self) -> tuple[int, ...]:
        """Tokens that are never generated; of what is forbidden, only single tokens are.

        A problem where the lists are something else.
        """
        banned, more = self.setting("bad_words_ids") or [], self.setting("suppress_tokens") or []
        if not isinstance(banned, list) or not isinstance(more, list):
            self.problems.append("bad_words_ids or suppress_tokens is no list")
            return ()
        words = [*banned, *([token] for token in more)]
        if any(not isinstance(word, list) or len(word) != 1 for word in words):
            self.problems.append("bad_words_ids has sequences; only single tokens are suppressed")
            return ()
        ids = [token for word in words for token in word]
        if any(type(token) is not int for token in ids):
            self.problems.append("bad_words_ids or suppress_tokens has something that is no id")
            return ()
        return tuple(sorted(set(ids)))

    @property
    def name(self) -> str:
        """What the model is called: as its folder, or on the hub where that is the hub's cache."""
        return folder_name(self.path)

    @property
    def made_from(self) -> str:
        """The model that the network was loaded from when it was saved, if config.json names one.

        It may be the model itself, or what this one was trained from.
        """
        value = self.config.get("_name_or_path")
        is_name = isinstance(value, str) and re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", value)
        return str(value).rpartition("/")[2] if is_name else ""

    @property
    def names(self) -> tuple[str, ...]:
        """What a family or directions may be told by, the nearest first."""
        return tuple(filter(None, (self.name, self.made_from)))

    @cached_property
    def licence(self) -> str | None:
        """What the head of README.md says, in the spelling of SPDX where that is known."""
        return card_licence(self.path)

    @property
    def licences(self) -> tuple[Licence, ...]:
        """The model itself, where its folder says under what it is, and perhaps whence."""
        if self.licence is None:
            return ()
        repository = _cached_repository(self.path)
        url = f"https://huggingface.co/{repository}" if repository else None
        return (Licence(corpus=self.name, licence=self.licence, url=url),)

    def _bounded(self, name: str, default: int | None, most: int) -> int:
        value = self.integer(name, default=default)
        if 1 <= value <= most:
            return value
        self.problems.append(f"config.json: {name} is {value}; it must be from 1 to {most}")
        self.has_all_sizes = False
        return 1


def _state(value: object) -> str:
    return "is missing" if value is None else f"is {shown(value)}"

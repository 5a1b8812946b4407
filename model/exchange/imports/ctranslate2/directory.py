"""Files beside model.bin in a CTranslate2 directory: config.json and the vocabularies.

Owns which files there are, their forms, and the special tokens that they name; older directories
have text files, and name the tokens in model.bin. It does not own ids (`model.exchange.imports.
numbering`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.files.verification import MAX_VOCABULARY_BYTES
from model.errors import CheckpointError, ConfigError, ForeignModelError, shown
from model.exchange.imports.ctranslate2.file import VariableFile
from model.system.paths import is_file

CONFIG_FILE = "config.json"
SHORTLIST_FILE = "vmap.txt"

_MAX_CONFIG_BYTES = 2**20
_FIRST_VERSION_WITH_CONFIG = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabularies:
    """Pieces by id."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that the engine reads in config.json, or in the variables of older files.

    Attributes:
        start: First decoder input; None where a caller gives it.
        layer_norm_epsilon: None for the engine's own.
    """

    unk: str
    bos: str
    eos: str
    start: str | None
    has_source_bos: bool
    has_source_eos: bool
    layer_norm_epsilon: float | None = None


USUAL_SETTINGS = Settings(
    unk="<unk>", bos="<s>", eos="</s>", start="<s>", has_source_bos=False, has_source_eos=False
)
"""What the engine takes where nothing says otherwise."""


def read_settings(directory: Path, file: VariableFile) -> Settings:
    """The settings of a directory of any version.

    Raises:
        ForeignModelError: config.json is damaged, or has values of other types; all are listed.
    """
    path = directory / CONFIG_FILE
    config = _read_object(path) if is_file(path, _unusable) else {}
    if file.version < _FIRST_VERSION_WITH_CONFIG:
        config = config | _old_config(file)
    problems = [
        *_type_problems(config, ("unk_token", "bos_token", "eos_token"), str),
        *_type_problems(config, ("add_source_bos", "add_source_eos"), bool),
    ]
    start, epsilon = config.get("decoder_start_token", "<s>"), config.get("layer_norm_epsilon")
    if not isinstance(start, str | None):
        problems.append(f"decoder_start_token is {shown(start)}; it must be a string or null")
    if not (epsilon is None or (type(epsilon) in {int, float} and 0 < float(str(epsilon)) < 1)):
        problems.append(f"layer_norm_epsilon is {shown(epsilon)}; it must be between 0 and 1")
    if config.get("quantization_type"):
        problems.append("its weights are quantised by AWQ, which is not supported")
    if problems:
        raise ForeignModelError(path, problems)
    return Settings(
        unk=str(config.get("unk_token", "<unk>")),
        bos=str(config.get("bos_token", "<s>")),
        eos=str(config.get("eos_token", "</s>")),
        start=start if isinstance(start, str) else None,
        has_source_bos=config.get("add_source_bos") is True,
        has_source_eos=config.get("add_source_eos") is True,
        layer_norm_epsilon=None if epsilon is None else float(str(epsilon)),
    )


def read_vocabularies(directory: Path) -> Vocabularies:
    """The pieces of both sides.

    Raises:
        ForeignModelError: A file is missing or damaged, or the source has several features.
    """
    shared = _read_pieces(directory, "shared_vocabulary")
    if shared is not None:
        return Vocabularies(source=shared, target=shared)
    source = _read_pieces(directory, "source_vocabulary")
    target = _read_pieces(directory, "target_vocabulary")
    if source is None and _read_pieces(directory, "source_1_vocabulary") is not None:
        raise ForeignModelError(
            directory, ["the source has several features a token, which is not supported"]
        )
    missing = [
        f"{side}_vocabulary.json, and shared_vocabulary.json, are missing"
        for side, pieces in (("source", source), ("target", target))
        if pieces is None
    ]
    if source is None or target is None:
        raise ForeignModelError(directory, missing)
    return Vocabularies(source=source, target=target)


def _read_pieces(directory: Path, name: str) -> tuple[str, ...] | None:
    """One list of pieces, in the new form or in the old one; None if there is none."""
    path, old_path = directory / f"{name}.json", directory / f"{name}.txt"
    if is_file(path, _unusable):
        value = _parsed(path, _read(path, MAX_VOCABULARY_BYTES))
        if not isinstance(value, list) or not all(isinstance(piece, str) for piece in value):
            raise ForeignModelError(path, ["is not a JSON list of strings"])
        return tuple(value)
    if is_file(old_path, _unusable):
        return _lines(old_path, _read(old_path, MAX_VOCABULARY_BYTES))
    return None


def _lines(path: Path, data: bytes) -> tuple[str, ...]:
    """The lines of a text file; carriage returns are its own only where not every line has one."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ForeignModelError(path, [f"is not UTF-8 at byte {error.start}"]) from error
    if lines[-1] == "":
        lines.pop()
    if all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    return tuple(lines)


def _old_config(file: VariableFile) -> dict[str, object]:
    """What variables of model.bin said before there was a config.json."""

    def flag(name: str, *, default: bool) -> bool:
        return bool(file.number(name, float(default)))

    bos, eos = file.text("bos_token", "<s>"), file.text("eos_token", "</s>")
    start: str | None = bos if flag("with_target_bos", default=True) else eos
    return {
        "unk_token": file.text("unk_token", "<unk>"),
        "bos_token": bos,
        "eos_token": eos,
        "add_source_bos": flag("with_source_bos", default=False),
        "add_source_eos": flag("with_source_eos", default=False),
        "decoder_start_token": None if flag("user_decoder_start_tokens", default=False) else start,
    }


def _type_problems(config: Mapping[str, object], names: tuple[str, ...], kind: type) -> list[str]:
    wanted = "a string" if kind is str else "true or false"
    return [
        f"{name} is {shown(config[name])}; it must be {wanted}"
        for name in names
        if name in config and type(config[name]) is not kind
    ]


def _read_object(path: Path) -> dict[str, object]:
    value = _parsed(path, _read(path, _MAX_CONFIG_BYTES))
    if not isinstance(value, dict):
        raise ForeignModelError(path, ["is not a JSON object"])
    return value


def _parsed(path: Path, data: bytes) -> object:
    try:
        return parse_json(data)
    except ConfigError as error:
        raise ForeignModelError(path, [str(error)]) from error


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        return read_limited(path, max_bytes)
    except CheckpointError as error:
        raise ForeignModelError(path, [error.problem]) from error


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])

"""config.json, schema 1: everything a checkpoint says of itself, and whether it holds together.

Owns the description (network, tokens, languages, limits, licences, tensors, files), its
reading and writing, and the checks between its parts. It does not own checksums
(`model.checkpoint.checksums`), weights (`model.checkpoint.weights`) or the pieces' texts
(`model.text.tokenizer`). Imports no torch: the front process reads it too.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from model.checkpoint.checksums import CHECKSUMS_FILE, read_limited, read_listing, verify_files
from model.checkpoint.names import name_problem
from model.checkpoint.plain import format_json, parse_json, read_dataclass
from model.checkpoint.verification import verify_parts
from model.config import ModelConfig
from model.errors import CheckpointError, ConfigError, InputError, shown
from model.system.paths import is_folder
from model.text.language import canonical_tag

SCHEMA_VERSION: Literal[1] = 1
CONFIG_FILE = "config.json"
MAX_CONFIG_BYTES = 16 * 2**20
MAX_PREFIX_PIECES = 256
MAX_PAIRS = 2**16
MAX_LICENCES = 2**12
MAX_TENSORS = 2**16
MAX_DIMENSIONS = 8
MAX_VOCABULARY_SIZE = 2**24
MAX_WIDTH = 2**20
MAX_LAYERS = 2**10
MAX_HEADS = 2**10
MAX_LENGTH = 2**17
SCALE_SUFFIX = ".scale"

TensorType = Literal["float32", "float16", "bfloat16", "int8"]
Quantisation = Literal["int8-row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """The ids that are not text; one numbering serves both sides.

    Attributes:
        pad_id: Fills up batches; never attended to.
        eos_id: Ends every source and every target.
        unk_id: Stands for a source piece that the table does not have.
        start_id: First decoder input (Marian: pad; M2M100 and NLLB: EOS).
        suppressed_ids: Target ids that are never generated.
        forced_first_id: The first generated id, whatever the network says; None for no rule.
            Languages that are chosen by a forced token use `LanguagePair.target_prefix`.
    """

    pad_id: int
    eos_id: int
    unk_id: int
    start_id: int
    suppressed_ids: tuple[int, ...] = ()
    forced_first_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """One direction, and the pieces that tell a multilingual network about it.

    Attributes:
        source: BCP-47 tag in canonical case (`en`, `zh-Hans`).
        target: The same for the target.
        source_prefix: Pieces before the source (`>>cmn_Hans<<`, `__en__`).
        target_prefix: Pieces after the start token, forced (`__zh__`).
    """

    source: str
    target: str
    source_prefix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLimits:
    """What the network was trained to see at once, in tokens.

    Attributes:
        max_source_length: Source tokens with prefix and EOS.
        max_target_length: Target tokens with EOS, without start token and prefix.
    """

    max_source_length: int
    max_target_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """What a corpus or a converted network came under.

    Attributes:
        corpus: Name of the corpus, or of the network that was converted.
        licence: SPDX identifier where there is one.
        url: Where it was published.
    """

    corpus: str
    licence: str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """How one tensor of the network is stored.

    Attributes:
        shape: Its shape in the network and in the file.
        dtype: Its element type in the file.
        quantisation: "int8-row" when rows are int8 with a float32 scale each, stored as
            `<name>.scale` of shape (rows,); None when the values are the weights.
    """

    shape: tuple[int, ...]
    dtype: TensorType
    quantisation: Quantisation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """Names of the files, all directly in the checkpoint's directory.

    Attributes:
        source_tokenizer: SentencePiece file of the source.
        target_tokenizer: That of the target; may be the same file.
        source_vocabulary: JSON object from piece to id, apart from the SentencePiece file.
        target_vocabulary: That of the target; may be the same file.
    """

    weights: str = "model.safetensors"
    source_tokenizer: str = "source.spm"
    target_tokenizer: str = "source.spm"
    source_vocabulary: str = "vocabulary.json"
    target_vocabulary: str = "vocabulary.json"
    card: str = "card.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All of config.json.

    Attributes:
        schema_version: Version of this layout.
        name: Short name, shown to users (`dragoman-en-zh`).
        description: One line for people.
        licence: Licence of the weights themselves, SPDX where there is one.
        network: Shape of the network.
        pairs: Directions it translates.
        licences: Of every corpus it was trained on.
        tensors: How every tensor is stored, by the names of the network's `state_dict`.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: str
    description: str
    licence: str
    network: ModelConfig
    tokens: SpecialTokens
    pairs: tuple[LanguagePair, ...]
    limits: LengthLimits
    licences: tuple[Licence, ...]
    tensors: Mapping[str, TensorEntry]
    files: CheckpointFiles

    def pair(self, source: str, target: str) -> LanguagePair | None:
        """The direction between two canonical tags, or None when it is not translated."""
        for pair in self.pairs:
            if (pair.source, pair.target) == (source, target):
                return pair
        return None


def read_manifest(directory: Path, *, verify: bool = True) -> Manifest:
    """Read and check config.json.

    Args:
        directory: The checkpoint.
        verify: Also compare every file with its checksum, which reads all of them.

    Raises:
        CheckpointError: A file is missing, damaged or of another version; config.json has
            missing, unknown or impossible values, all of which the message lists.
    """
    path = directory / CONFIG_FILE
    if not is_folder(directory, CheckpointError):
        raise CheckpointError(directory, "no such checkpoint directory")
    listed = read_listing(directory) if verify else {}
    if CONFIG_FILE in listed:  # what it says bounds what is read of the others
        sizes = {CONFIG_FILE: (0, MAX_CONFIG_BYTES)}
        verify_files(directory, {CONFIG_FILE: listed.pop(CONFIG_FILE)}, sizes, max_other_bytes=0)
    elif verify:
        raise CheckpointError(path, "has no line in the checksums")
    manifest = _parse_manifest(path, read_limited(path, MAX_CONFIG_BYTES))
    if verify:
        verify_parts(directory, manifest, listed)
    return manifest


def format_manifest(manifest: Manifest) -> bytes:
    """The bytes of config.json.

    Raises:
        ConfigError: The parts of the manifest contradict each other; all are listed.
    """
    problems = manifest_problems(manifest)
    if problems:
        raise ConfigError(_listed("the checkpoint's description is inconsistent", problems))
    return format_json(manifest)


def manifest_problems(manifest: Manifest) -> list[str]:
    """Everything in which the parts of a manifest contradict each other."""
    problems = _count_problems(manifest)
    if problems:
        return problems
    return [
        *_text_problems(manifest),
        *_file_problems(manifest.files),
        *_size_problems(manifest.network),
        *_token_problems(manifest.tokens, manifest.network),
        *_pair_problems(manifest.pairs),
        *_limit_problems(manifest),
        *_tensor_problems(manifest),
    ]


def _parse_manifest(path: Path, data: bytes) -> Manifest:
    try:
        value = parse_json(data)
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version != SCHEMA_VERSION:
        # Another version has other keys: listing those would only hide the reason.
        problem = f"schema_version is {version}; this Dragoman reads {SCHEMA_VERSION}"
        raise CheckpointError(path, problem)
    problems: list[str] = []
    manifest = read_dataclass(Manifest, value, problems)
    if manifest is not None:
        problems += manifest_problems(manifest)
    if manifest is None or problems:
        raise CheckpointError(path, _listed("cannot be used", problems))
    return manifest


def _listed(headline: str, problems: list[str]) -> str:
    return "; ".join([f"{headline}: {problems[0]}", *problems[1:]])


def _text_problems(manifest: Manifest) -> list[str]:
    names = {"name": manifest.name, "licence": manifest.licence}
    problems = [f"{place} is empty" for place, name in names.items() if not name.strip()]
    for index, licence in enumerate(manifest.licences):
        names[f"licences[{index}].corpus"] = licence.corpus
        names[f"licences[{index}].licence"] = licence.licence
        names[f"licences[{index}].url"] = licence.url or ""
    found = {place: name_problem(name) for place, name in names.items()}
    return problems + [f"{place} {problem}" for place, problem in found.items() if problem]


def _count_problems(manifest: Manifest) -> list[str]:
    """More than any checkpoint has, refused before anything is made of it."""
    counts = {
        "pairs": (len(manifest.pairs), MAX_PAIRS),
        "licences": (len(manifest.licences), MAX_LICENCES),
        "tensors": (len(manifest.tensors), MAX_TENSORS),
        "tokens.suppressed_ids": (
            len(manifest.tokens.suppressed_ids),
            manifest.network.output_size,
        ),
        "the longest prefix of pairs": (
            max(
                (max(len(pair.source_prefix), len(pair.target_prefix)) for pair in manifest.pairs),
                default=0,
            ),
            MAX_PREFIX_PIECES,
        ),
        "the largest shape of tensors": (
            max((len(entry.shape) for entry in manifest.tensors.values()), default=0),
            MAX_DIMENSIONS,
        ),
    }
    return [
        f"{name} has {count} entries; at most {limit} are read"
        for name, (count, limit) in counts.items()
        if count > limit
    ]


def _file_problems(files: CheckpointFiles) -> list[str]:
    roles: dict[str, set[str]] = {CONFIG_FILE: {CONFIG_FILE}, CHECKSUMS_FILE: {CHECKSUMS_FILE}}
    problems = []
    for role, name in asdict(files).items():
        # A plain name: no folder, no "..", nothing hidden, no drive, no control character.
        is_plain = name.isprintable() and not name.startswith(".") and not set(name) & set("/\\:")
        if not name or not is_plain:
            problems.append(f"files.{role} is {shown(name)}; it must be a plain file name")
        roles.setdefault(name, set()).add(role.removeprefix("source_").removeprefix("target_"))
    for name, kinds in roles.items():
        if len(kinds) > 1:
            problems.append(f"files uses {shown(name)} for {' and '.join(sorted(kinds))}")
    return problems


def _size_problems(network: ModelConfig) -> list[str]:
    """Sizes that no network has, refused before anything is built from them."""
    limits = {
        "vocab_size": MAX_VOCABULARY_SIZE,
        "target_vocab_size": MAX_VOCABULARY_SIZE,
        "num_encoder_layers": MAX_LAYERS,
        "num_decoder_layers": MAX_LAYERS,
        "num_heads": MAX_HEADS,
        **dict.fromkeys(
            ("d_model", "d_ff", "d_k", "d_v", "position_offset", "max_positions"), MAX_WIDTH
        ),
    }
    return [
        f"network.{name} is {getattr(network, name)}; at most {limit} is read"
        for name, limit in limits.items()
        if (getattr(network, name) or 0) > limit
    ]


def _token_problems(tokens: SpecialTokens, network: ModelConfig) -> list[str]:
    shared = min(network.vocab_size, network.output_size)
    sizes = {"pad_id": shared, "eos_id": shared, "unk_id": shared, "start_id": network.output_size}
    problems = [
        f"tokens.{name} is {getattr(tokens, name)}; it must be from 0 to {size - 1}"
        for name, size in sizes.items()
        if not 0 <= getattr(tokens, name) < size
    ]
    generated = {"suppressed_ids": tokens.suppressed_ids}
    if tokens.forced_first_id is not None:
        generated["forced_first_id"] = (tokens.forced_first_id,)
    for name, ids in generated.items():
        wrong = [token for token in ids if not 0 <= token < network.output_size]
        if wrong:
            problems.append(
                f"tokens.{name} has {wrong[0]}; it must be from 0 to {network.output_size - 1}"
            )
    if tokens.pad_id != network.pad_id:
        problems.append(f"tokens.pad_id is {tokens.pad_id}, network.pad_id is {network.pad_id}")
    if tokens.eos_id in tokens.suppressed_ids:
        problems.append(f"tokens.suppressed_ids has eos_id ({tokens.eos_id}): nothing would end")
    if tokens.pad_id == tokens.eos_id:
        problems.append(f"tokens.pad_id and tokens.eos_id are both {tokens.pad_id}")
    return problems


def _pair_problems(pairs: tuple[LanguagePair, ...]) -> list[str]:
    problems = [] if pairs else ["pairs is empty"]
    for index, pair in enumerate(pairs):
        for side, tag in (("source", pair.source), ("target", pair.target)):
            try:
                canonical = canonical_tag(tag)
            except InputError as error:
                problems.append(f"pairs[{index}].{side}: {error}")
                continue
            if tag != canonical:
                problems.append(f"pairs[{index}].{side} is {shown(tag)}; it must be {canonical!r}")
    directions = Counter((pair.source, pair.target) for pair in pairs)
    problems += [
        f"pairs has {source} → {target} {count} times"
        for (source, target), count in sorted(directions.items())
        if count > 1
    ]
    return problems


def _limit_problems(manifest: Manifest) -> list[str]:
    limits, network = manifest.limits, manifest.network
    longest = max((len(pair.source_prefix) for pair in manifest.pairs), default=0)
    problems = []
    if limits.max_source_length < longest + 2:
        problems.append(
            f"limits.max_source_length is {limits.max_source_length}; it must be at least"
            f" {longest + 2} (the longest prefix, one piece and EOS)"
        )
    lengths = {
        "limits.max_source_length": limits.max_source_length,
        "limits.max_target_length": limits.max_target_length,
    }
    problems += [
        f"{name} is {length}; at most {MAX_LENGTH} is read"
        for name, length in lengths.items()
        if length > MAX_LENGTH
    ]
    if limits.max_target_length < 1:
        problems.append(
            f"limits.max_target_length is {limits.max_target_length}; it must be at least 1"
        )
    if network.position == "learned":
        longest = max((len(pair.target_prefix) for pair in manifest.pairs), default=0)
        rows = max(limits.max_source_length, limits.max_target_length + longest)
        rows += network.position_offset
        if rows > network.max_positions:
            problems.append(
                f"network.max_positions is {network.max_positions}; the limits need {rows}"
            )
    return problems


def _tensor_problems(manifest: Manifest) -> list[str]:
    tensors, problems = manifest.tensors, []
    for name, entry in tensors.items():
        if any(size < 1 for size in entry.shape):
            problems.append(f"tensors.{name}.shape is {list(entry.shape)}; sizes start at 1")
        if (entry.dtype == "int8") != (entry.quantisation is not None):
            problems.append(
                f"tensors.{name} has dtype {entry.dtype!r} and quantisation"
                f" {entry.quantisation!r}; int8 goes with 'int8-row' only"
            )
        if entry.quantisation is not None and len(entry.shape) < 2:
            problems.append(f"tensors.{name} has {len(entry.shape)} dimensions; int8 needs 2")
        if name + SCALE_SUFFIX in tensors:
            problems.append(f"tensors.{name}{SCALE_SUFFIX} is the name of a scale")
    return problems

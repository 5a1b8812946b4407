"""The checks between the parts of a checkpoint's description, and the sizes that are read at all.

Owns what contradicts what, and the limits beyond which nothing is built. It does not own the
types (`model.checkpoint.manifest`), nor the files (`model.checkpoint.files.verification`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from model.checkpoint.description.names import name_problem
from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.checkpoint.manifest import CONFIG_FILE, SCALE_SUFFIX, Licence, Manifest, ShortlistEntry
from model.config import ModelConfig, SpecialTokens
from model.errors import InputError, shown
from model.text.languages.tags import LanguagePair, canonical_tag

MAX_PREFIX_PIECES = 256
MAX_LANGUAGES = 2**9
MAX_PAIRS = 2**16
MAX_LICENCES = 2**12
MAX_TENSORS = 2**16
MAX_DIMENSIONS = 8
MAX_VOCABULARY_SIZE = 2**24
MAX_WIDTH = 2**20
MAX_LAYERS = 2**10
MAX_HEADS = 2**10
MAX_LENGTH = 2**17
MAX_LISTED = 2**26


def language_problems(manifest: Manifest) -> list[str]:
    """What is wrong with the languages of a file, before pairs are made of them."""
    problems = []
    if len(manifest.languages) > MAX_LANGUAGES:
        problems.append(
            f"languages has {len(manifest.languages)} entries; at most {MAX_LANGUAGES} are read"
        )
    if manifest.languages and manifest.pairs:
        problems.append("pairs and languages are both given; languages stand for all their pairs")
    return problems


def manifest_problems(manifest: Manifest) -> list[str]:
    """Everything in which the parts of a manifest contradict each other."""
    problems = _count_problems(manifest)
    if problems:
        return problems
    return [
        *_text_problems(manifest),
        *_file_problems(manifest),
        *size_problems(manifest.network),
        *_token_problems(manifest.tokens, manifest.network),
        *([] if manifest.pairs else ["pairs is empty"]),
        *pair_problems(manifest.pairs),
        *_limit_problems(manifest),
        *_tensor_problems(manifest),
        *_shortlist_problems(manifest.shortlist, manifest.network),
    ]


def _text_problems(manifest: Manifest) -> list[str]:
    names = {"name": manifest.name, "licence": manifest.licence}
    problems = [f"{place} is empty" for place, name in names.items() if not name.strip()]
    if problem := name_problem(manifest.name):
        problems.append(f"name {problem}")
    return problems + licence_problems(manifest.licence, manifest.licences)


def licence_problems(licence: str, licences: Sequence[Licence]) -> list[str]:
    """Names that people could not read, of the licence of weights and of those of corpora."""
    names = {"licence": licence}
    for index, one in enumerate(licences):
        names |= {f"licences[{index}].{key}": text or "" for key, text in asdict(one).items()}
    found = {place: name_problem(name) for place, name in names.items()}
    return [f"{place} {problem}" for place, problem in found.items() if problem]


def _count_problems(manifest: Manifest) -> list[str]:
    """More than any checkpoint has, refused before anything is made of it."""
    counts = {
        "pairs": (
            len(manifest.pairs),
            MAX_LANGUAGES**2 if manifest.languages else MAX_PAIRS,
        ),
        "licences": (len(manifest.licences), MAX_LICENCES),
        "tensors": (len(manifest.tensors), MAX_TENSORS),
        "tokens.suppressed_ids": (
            len(manifest.tokens.suppressed_ids),
            manifest.network.output_size,
        ),
        "the longest prefix of pairs": (
            max(
                (max(len(pair.source_start), len(pair.target_prefix)) for pair in manifest.pairs),
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


def _file_problems(manifest: Manifest) -> list[str]:
    roles: dict[str, set[str]] = {CONFIG_FILE: {CONFIG_FILE}, CHECKSUMS_FILE: {CHECKSUMS_FILE}}
    names: dict[str, str] = {f"files.{role}": name for role, name in asdict(manifest.files).items()}
    if manifest.shortlist is not None:
        names["shortlist.file"] = manifest.shortlist.file
    problems = []
    for role, name in names.items():
        # A plain name: no folder, no "..", nothing hidden, no drive, no control character.
        is_plain = name.isprintable() and not name.startswith(".") and not set(name) & set("/\\:")
        if not name or not is_plain:
            problems.append(f"{role} is {shown(name)}; it must be a plain file name")
        kind = role.removeprefix("files.").removeprefix("source_").removeprefix("target_")
        roles.setdefault(name, set()).add(kind.removesuffix(".file"))
    for name, kinds in roles.items():
        if len(kinds) > 1:
            problems.append(f"files uses {shown(name)} for {' and '.join(sorted(kinds))}")
    return problems


def size_problems(network: ModelConfig) -> list[str]:
    """Sizes that no network has, refused before anything is built from them."""
    limits = {
        "vocab_size": MAX_VOCABULARY_SIZE,
        "target_vocab_size": MAX_VOCABULARY_SIZE,
        "num_encoder_layers": MAX_LAYERS,
        "num_decoder_layers": MAX_LAYERS,
        "num_heads": MAX_HEADS,
        **dict.fromkeys(
            ("d_model", "d_ff", "decoder_d_ff", "d_k", "d_v", "position_offset", "max_positions"),
            MAX_WIDTH,
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


def pair_problems(pairs: Iterable[LanguagePair]) -> list[str]:
    """Tags that are none or are not canonical, and directions that are there twice."""
    problems = []
    pairs = tuple(pairs)
    tags = {tag for pair in pairs for tag in (pair.source, pair.target)}
    wrong = {tag: problem for tag in tags if (problem := tag_problem(tag)) is not None}
    if wrong:
        problems += [
            f"pairs[{index}].{side}{wrong[tag]}"
            for index, pair in enumerate(pairs)
            for side, tag in (("source", pair.source), ("target", pair.target))
            if tag in wrong
        ]
    directions = Counter((pair.source, pair.target) for pair in pairs)
    problems += [
        f"pairs has {source} → {target} {count} times"
        for (source, target), count in sorted(directions.items())
        if count > 1
    ]
    return problems


def tag_problem(tag: str) -> str | None:
    """What is wrong with a tag, to follow its place; None if there is nothing."""
    try:
        canonical = canonical_tag(tag)
    except InputError as error:
        return f": {error}"
    return None if tag == canonical else f" is {shown(tag)}; it must be {canonical!r}"


def _limit_problems(manifest: Manifest) -> list[str]:
    limits, network = manifest.limits, manifest.network
    longest = max((len(pair.source_start) for pair in manifest.pairs), default=0)
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
        without_start = manifest.max_target_positions - 1
        rows = max(limits.max_source_length, without_start) + network.position_offset
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


def _shortlist_problems(entry: ShortlistEntry | None, network: ModelConfig) -> list[str]:
    if entry is None:
        return []
    limits = {"num_always": network.output_size, "num_ids": MAX_LISTED}
    problems = [
        f"shortlist.{name} is {getattr(entry, name)}; it must be from 0 to {limit}"
        for name, limit in limits.items()
        if not 0 <= getattr(entry, name) <= limit
    ]
    if entry.with_source and network.vocab_size != network.output_size:
        problems.append(
            f"shortlist.with_source is true for {network.vocab_size} source and"
            f" {network.output_size} target tokens"
        )
    return problems

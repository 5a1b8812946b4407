"""Importer of Marian models: a model file, or a folder with one, its vocabularies and decoder.yml.

Owns which files of a folder are the model's: decoder.yml says it, or else their names do. The
releases of OPUS-MT and Firefox Translations, which say more of themselves, are `opus_mt.py` and
`firefox.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from model.errors import ForeignModelError, shown
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.languages import plain_pair, split_pair
from model.exchange.imports.marian.files import MAX_OPTIONS_BYTES, parse_options, read_small
from model.exchange.imports.marian.model import (
    MarianFacts,
    MarianSources,
    build_model,
    is_marian_file,
)
from model.exchange.imports.marian.shortlist import is_shortlist
from model.text.languages.tags import LanguagePair

_MODEL_NAMES = (".npz", ".bin", ".bin.gz")
_VOCABULARY_NAMES = (
    ".spm", ".spm.gz", ".vocab", ".vocab.yml", ".vocab.yaml", ".vocab.json", "vocab.yml",
    "vocab.yaml", "vocab.json", ".fsv",
)  # fmt: skip
_SEARCH_OPTIONS = ("beam-size", "normalize", "word-penalty", "max-length-factor", "allow-unk")
_MAX_ENTRIES = 4_096


@dataclass(frozen=True, slots=True)
class MarianImporter:
    """Marian's own files."""

    name: str = "Marian"

    def recognises(self, source: Path) -> bool:
        """Whether there is a network of Marian's: the file itself, or one in the folder."""
        return any(map(is_marian_file, model_files(source)))

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Headers, options, vocabularies.

        Raises:
            ForeignModelError: With everything that is in the way.
        """
        files, settings = find_files(source)
        return build_model(
            source,
            files,
            MarianFacts(
                format="Marian",
                name=source.name.removesuffix(files.model.suffix) or "marian",
                description=f"A Marian model, converted from {files.model.name}",
                pairs=_pairs(files, options),
                notes=search_notes(settings, files),
            ),
        )


MARIAN = MarianImporter()


def model_files(source: Path) -> list[Path]:
    """Files of a folder that are named as models are; of a file, itself if it is."""
    try:
        paths = folder_files(source) if source.is_dir() else [source]
    except (OSError, ValueError, ForeignModelError):
        return []
    return [path for path in paths if path.name.endswith(_MODEL_NAMES) and path.is_file()]


def folder_files(folder: Path) -> list[Path]:
    """The files of a folder by name, not those of folders in it.

    Raises:
        ForeignModelError: It cannot be read, or has far more files than a model.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise ForeignModelError(folder, [f"cannot be read: {error.strerror}"]) from error
    if len(paths) > _MAX_ENTRIES:
        raise ForeignModelError(folder, [f"has {len(paths)} files; at most {_MAX_ENTRIES}"])
    return paths


def find_files(source: Path) -> tuple[MarianSources, Mapping[str, object]]:
    """The files of a model, and what decoder.yml says; empty where there is none.

    Raises:
        ForeignModelError: They are not there, or not one model's.
    """
    folder = source if source.is_dir() else source.parent
    settings = _decoder_settings(folder, None if source.is_dir() else source.name)
    if settings:
        return _listed_files(folder, settings), settings
    models = [path for path in model_files(source) if is_marian_file(path)]
    if len(models) != 1:
        names = ", ".join(path.name for path in models) or "none"
        raise ForeignModelError(source, [f"has {len(models)} models ({names}); name one of them"])
    return _guessed_files(folder, models[0]), {}


def _decoder_settings(folder: Path, model_name: str | None) -> dict[str, object]:
    """The one file with `models` and `vocabs`; of several the one named decoder.yml.

    Args:
        folder: Where to look.
        model_name: The model that it must be about; None for any.
    """
    found: dict[str, dict[str, object]] = {}
    for path in folder_files(folder):
        if path.suffix not in {".yml", ".yaml"} or path.stat().st_size > MAX_OPTIONS_BYTES:
            continue
        if path.name.endswith(_VOCABULARY_NAMES):
            continue
        try:
            values = parse_options(path, read_small(path, MAX_OPTIONS_BYTES))
        except ForeignModelError:
            continue
        models = [PurePosixPath(name).name for name in _names(values, "models")]
        if models and "vocabs" in values and (model_name is None or model_name in models):
            found[path.name] = values
    if len(found) > 1 and "decoder.yml" in found:
        return found["decoder.yml"]
    if len(found) > 1:
        problem = f"has several descriptions of how to decode: {', '.join(found)}"
        raise ForeignModelError(folder, [problem])
    return next(iter(found.values()), {})


def _names(values: Mapping[str, object], key: str) -> list[str]:
    names = values.get(key)
    listed = names if isinstance(names, list) else [names]
    return [name for name in listed if isinstance(name, str)]


def _listed_files(folder: Path, settings: Mapping[str, object]) -> MarianSources:
    """The files that decoder.yml names; whatever folder it says, they are beside it."""
    models = [PurePosixPath(name).name for name in _names(settings, "models")]
    vocabularies = [PurePosixPath(name).name for name in _names(settings, "vocabs")]
    problems = []
    if len(models) > 1:
        problems.append(f"is an ensemble of {len(models)} models; one is supported")
    if len(vocabularies) not in {1, 2}:
        problems.append(f"has {len(vocabularies)} vocabularies; a source and a target are needed")
    problems += [
        f"has no {name}, which its settings name"
        for name in dict.fromkeys([*models, *vocabularies])
        if not (folder / name).is_file()
    ]
    if problems:
        raise ForeignModelError(folder, problems)
    source, target = folder / vocabularies[0], folder / vocabularies[-1]
    return MarianSources(
        model=folder / models[0],
        vocabularies=(source, target),
        spms=spms_beside(folder, (source, target)),
        shortlist=_shortlist_beside(folder, settings),
    )


def _shortlist_beside(folder: Path, settings: Mapping[str, object]) -> Path | None:
    """The binary shortlist that decoder.yml names, if it is there; text is not read."""
    for name in _names(settings, "shortlist")[:1]:
        path = folder / PurePosixPath(name).name
        if path.is_file() and is_shortlist(path):
            return path
    return None


def _guessed_files(folder: Path, model: Path) -> MarianSources:
    """The vocabularies of a folder by their names: one, or one for each side."""
    candidates = [path for path in folder_files(folder) if path.name.endswith(_VOCABULARY_NAMES)]
    tables = [path for path in candidates if ".spm" not in path.suffixes] or candidates
    if len(tables) == 1:
        vocabularies = (tables[0], tables[0])
    else:
        sources, targets = side_of(tables, "src", "source"), side_of(tables, "trg", "tgt", "target")
        if len(sources) != 1 or len(targets) != 1:
            names = ", ".join(path.name for path in tables) or "none"
            raise ForeignModelError(
                folder, [f"needs one vocabulary, or one for each side; it has {names}"]
            )
        vocabularies = (sources[0], targets[0])
    spms = spms_beside(folder, vocabularies)
    return MarianSources(model=model, vocabularies=vocabularies, spms=spms)


def side_of(paths: Iterable[Path], *marks: str) -> list[Path]:
    """Paths whose names have one of some marks."""
    return [path for path in paths if any(mark in path.name for mark in marks)]


def spms_beside(folder: Path, vocabularies: tuple[Path, Path]) -> tuple[Path, Path] | None:
    """source.spm and target.spm, where the vocabularies themselves have no pieces."""
    if any(".spm" in path.suffixes for path in vocabularies):
        return None
    source, target = folder / "source.spm", folder / "target.spm"
    return (source, target) if source.is_file() and target.is_file() else None


def search_notes(settings: Mapping[str, object], files: MarianSources) -> tuple[str, ...]:
    """What decoder.yml says of the search, for the card: a server has settings of its own."""
    said = {name: settings[name] for name in _SEARCH_OPTIONS if name in settings}
    notes = []
    if said:
        values = ", ".join(f"{name} {shown(value)}" for name, value in said.items())
        notes.append(f"Its authors decode with {values}; here the request or the server decides.")
    if files.shortlist is not None:
        notes.append("Its lexical shortlist came along, and is used where that is asked for.")
    elif "shortlist" in settings:
        notes.append("Its lexical shortlist is not used: every target token may be chosen.")
    return tuple(notes)


def _pairs(files: MarianSources, options: ImportOptions) -> tuple[LanguagePair, ...]:
    """What a person says, or the names of the vocabulary or its folder."""
    if options.pairs:
        return tuple(LanguagePair(source=source, target=target) for source, target in options.pairs)
    first, *others = files.vocabularies[0].name.split(".")
    folder = files.model.parent.name.split(".")
    found = [plain_pair(first), *map(split_pair, others), *map(plain_pair, folder)]
    pair = next(filter(None, found), None)
    return () if pair is None else (LanguagePair(source=pair[0], target=pair[1]),)

"""The training text of a run: from files of lines to a store of token ids.

Owns which files are read, the order of pairs, what a store depends on, and the report of pairs
that are left out. Lines are read as often as they are needed and never kept: host memory holds one
byte a pair (and eight more while duplicates are searched). Does not own the
files of a store or the filters.
"""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from model.errors import DataError, TrainingError
from model.system.paths import exists, is_file
from model.train.config.comparison import explicit_values
from model.train.config.data import CorpusConfig, DataConfig, DirectionConfig, tag_piece
from model.train.config.filters import FilterConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.filtering import (
    FILTERS,
    CorpusReport,
    LineFilter,
    Verdict,
    mark_duplicates,
    pair_hash,
    report_corpus,
    verdict_on_lengths,
)
from model.train.data.held_out import HeldOutPairs, warn_of_held_out
from model.train.data.languages import LanguageProfiles, LanguageSample, learn_languages
from model.train.data.parallel import find_text, iterate_parallel, one_line
from model.train.data.store import (
    StoredPairs,
    StoreWriter,
    hash_file,
    ingredients_key,
    open_or_build,
)
from model.train.data.variants import FORMS, NO_FORM, vary
from model.train.data.vocabulary import EOS_ID, Vocabularies, load_pieces
from model.train.files import naming_files, write_whole
from model.train.stopping import LINES_AT_ONCE, ShouldStop, never, until_stopped

TEXT_FILE = "text.json"
"""In a run's folder: what its training text is made of, and what was left out of it."""

_NO_PAIRS: HeldOutPairs = MappingProxyType({})
_BLANK_REMEDY = "; data.filters.drop_blank leaves pairs with a blank side out"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFiles:
    """Files of a direction's corpus, and the experiment's key that names it."""

    key: str
    direction: DirectionConfig
    corpus: CorpusConfig
    source: Path
    target: Path

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"{self.direction.name} {self.corpus.label}"

    def pairs(self, *, may_be_blank: bool) -> Iterator[tuple[str, str]]:
        """Its pairs in the form that the experiment selects.

        Raises:
            DataError: As `iterate_parallel`.
        """
        pairs = iterate_parallel(
            self.source, self.target, may_be_blank=may_be_blank, remedy=_BLANK_REMEDY
        )
        variant = self.corpus.variant
        return pairs if variant is None else (vary(variant, *pair) for pair in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredCorpora:
    """Corpora and a verdict on each of their pairs; see `model.train.data.filtering.Verdict`."""

    files: tuple[CorpusFiles, ...]
    verdicts: tuple[NDArray[np.uint8], ...]

    @property
    def num_kept(self) -> int:
        """Pairs that are not left out."""
        return sum(int((verdicts == Verdict.KEPT).sum()) for verdicts in self.verdicts)

    def lines(self, side: str) -> Iterator[str]:
        """The kept lines of one side ("source" or "target"), corpus after corpus."""
        place = ("source", "target").index(side)
        for files, verdicts in zip(self.files, self.verdicts, strict=True):
            is_kept = verdicts == Verdict.KEPT
            for pair, is_wanted in zip(files.pairs(may_be_blank=True), is_kept, strict=True):
                if is_wanted:
                    yield pair[place]


def find_corpora(data: DataConfig, data_folder: Path, places: KeyPlaces) -> tuple[CorpusFiles, ...]:
    """The files of all training corpora, direction by direction.

    Raises:
        DataError: One is missing; the message names the file and the key.
    """
    found = []
    for prefix, direction in zip(data.keys, data.directions, strict=True):
        for number, corpus in enumerate(direction.train):
            key = f"{prefix}.train[{number}]"
            with places.blame(key):
                source, target = (
                    _find_side(data_folder, direction, corpus, override, language)
                    for override, language in (
                        (corpus.source_file, direction.source_language),
                        (corpus.target_file, direction.target_language),
                    )
                )
            found.append(
                CorpusFiles(
                    key=key, direction=direction, corpus=corpus, source=source, target=target
                )
            )
    return tuple(found)


def filter_corpora(
    files: Sequence[CorpusFiles],
    data: DataConfig,
    places: KeyPlaces,
    should_stop: ShouldStop = never,
    held_out: HeldOutPairs = _NO_PAIRS,
) -> FilteredCorpora:
    """A verdict on every line: whether it is sound, and whether the filters keep it.

    With `language_margin` every line is read twice, first to learn the languages' profiles.
    Corpora with pairs that are held-out ones of their direction, and are kept, are warned of.

    Raises:
        ConfigError: The filters cannot be used for a language.
        DataError: Text is misaligned, damaged, or nothing of a corpus is kept; the message names
            the file and the key.
        StoppedError: `should_stop` returned true.
    """
    languages = None
    if data.filters.language_margin:
        languages = _learn_languages(files, data, places, should_stop)
    verdicts: list[NDArray[np.uint8]] = []
    for direction in data.directions:
        own = [item for item in files if item.direction == direction]
        line_filter = LineFilter(
            data.filters, source=direction.source, target=direction.target, languages=languages
        )
        verdicts += _filter_direction(
            own,
            data,
            line_filter,
            places=places,
            should_stop=should_stop,
            held_out=held_out.get(direction, frozenset()),
        )
    filtered = FilteredCorpora(files=tuple(files), verdicts=tuple(verdicts))
    _require_pairs(filtered, places)
    return filtered


def text_ingredients(
    files: Sequence[CorpusFiles],
    data: DataConfig,
    vocabularies: Vocabularies,
    should_stop: ShouldStop = never,
) -> dict[str, str]:
    """Everything the stored text depends on, by name: settings, and hashes of files' bytes.

    Raises:
        DataError: A file cannot be read.
        StoppedError: `should_stop` returned true.
    """
    found = {
        "data.max_length": str(data.max_length),
        "data.filters": _filters_value(data.filters),
        "data.regularisation": "set" if data.regularisation else "not set",
    }
    for number, item in enumerate(files):
        tag = tag_piece(item.direction) if data.is_tagged else ""
        tags = f"{item.direction.source} {item.direction.target}"
        forms = f" forms {FORMS}" if item.corpus.variant else ""
        found[f"corpus {number + 1}"] = f"{item.label} {tags} {tag}{forms}"
    try:
        found["the source vocabulary"] = hash_file(vocabularies.source_path)
        found["the target vocabulary"] = hash_file(vocabularies.target_path)
        for item in files:
            found[f"{item.label}, source"] = hash_file(item.source, should_stop)
            found[f"{item.label}, target"] = hash_file(item.target, should_stop)
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror or error}") from error
    return found


def _filters_value(filters: FilterConfig) -> str:
    """What the filters are; without those of scripts it is what it was when these had no number."""
    rules = f" rules {FILTERS}" if filters.min_script_share else ""
    return f"{json.dumps(explicit_values(filters))}{rules}"


def open_text(
    files: Sequence[CorpusFiles],
    data: DataConfig,
    vocabularies: Vocabularies,
    *,
    cache: Path,
    ingredients: Mapping[str, str],
    places: KeyPlaces,
    filtered: FilteredCorpora | None = None,
    should_stop: ShouldStop = never,
    held_out: HeldOutPairs = _NO_PAIRS,
) -> StoredPairs:
    """The tokenised training text, read from the cache or put there.

    Args:
        files: From `find_corpora`.
        data: Of the experiment.
        vocabularies: Of the run.
        cache: Folder of stores.
        ingredients: From `text_ingredients`.
        places: Where the experiment's keys stand.
        filtered: The verdicts, if they are there already.
        should_stop: Checked often; an unfinished store is removed.
        held_out: As in `filter_corpora`, where that is still to be done.

    Raises:
        ConfigError: As `filter_corpora`.
        DataError: As `filter_corpora`; or no pair is short enough.
        StoppedError: `should_stop` returned true.
    """

    def fill(writer: StoreWriter) -> None:
        found = filtered or filter_corpora(files, data, places, should_stop, held_out)
        _require_pairs(_tokenise(found, data, vocabularies, writer, should_stop), places)

    has_text = data.regularisation is not None
    return open_or_build(cache, ingredients, fill, has_text=has_text, should_stop=should_stop)


def write_text_facts(
    folder: Path, ingredients: Mapping[str, str], reports: Sequence[CorpusReport]
) -> None:
    """Write `text.json` into a run's folder, unless it says the same already.

    Raises:
        TrainingError: It cannot be read or written; what stood there still does.
    """
    path = folder / TEXT_FILE
    facts = {
        "key": ingredients_key(ingredients),
        "corpora": [asdict(report) for report in reports],
        "made_of": dict(ingredients),
    }
    data = f"{json.dumps(facts, ensure_ascii=False, indent=1)}\n".encode()
    with naming_files(path):
        if path.exists() and path.read_bytes() == data:
            return
    write_whole(path, data)


def check_same_text(folder: Path, ingredients: Mapping[str, str]) -> None:
    """Compare the text of a run that is resumed with the text it began with.

    Raises:
        TrainingError: They differ, and the message names in what; or the file that describes
            the run's text is missing.
    """
    path = folder / TEXT_FILE
    try:
        before = dict(json.loads(path.read_bytes())["made_of"])
    except FileNotFoundError as error:
        raise TrainingError(
            f"{path}: missing, so nobody can tell whether the training text is what this run began"
            " with; put it back, or begin another run with --start-from"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path}: cannot be read: {error!r}") from error
    if before == ingredients:
        return
    names = sorted({*before, *ingredients})
    changed = [name for name in names if before.get(name) != ingredients.get(name)]
    raise TrainingError(
        f"{path}: the training text is not what this run began with; changed: {'; '.join(changed)}"
    )


def _find_side(
    data_folder: Path,
    direction: DirectionConfig,
    corpus: CorpusConfig,
    override: str | None,
    language: str,
) -> Path:
    if override is None:
        return find_text(data_folder / direction.folder / "train", corpus.name, language)
    path = Path(override)
    if not is_file(path):
        problem = "is no file" if exists(path) else "no such file"
        raise DataError(f"{path}: {problem}; data.train names it for {corpus.name!r}")
    return path


def _learn_languages(
    files: Sequence[CorpusFiles], data: DataConfig, places: KeyPlaces, should_stop: ShouldStop
) -> LanguageProfiles:
    sample = LanguageSample()
    for item in files:
        pairs = item.pairs(may_be_blank=data.filters.drop_blank)
        with places.blame(item.key):
            for source, target in until_stopped(pairs, should_stop):
                sample.add(item.direction.source, source)
                sample.add(item.direction.target, target)
    return learn_languages(sample.lines, data.filters.language_margin, should_stop)


def _filter_direction(
    files: Sequence[CorpusFiles],
    data: DataConfig,
    line_filter: LineFilter,
    *,
    places: KeyPlaces,
    should_stop: ShouldStop,
    held_out: Set[tuple[str, str]],
) -> list[NDArray[np.uint8]]:
    filters = data.filters
    verdicts = bytearray()
    hashes: list[NDArray[np.uint64]] = []
    ends = [0]
    for item in files:
        pairs = item.pairs(may_be_blank=filters.drop_blank)
        lines = until_stopped(pairs, should_stop)
        num_held_out = 0
        with places.blame(item.key):
            while chunk := list(islice(lines, LINES_AT_ONCE)):
                found = line_filter.verdicts(chunk)
                if (limit := item.corpus.max_characters) is not None:
                    is_long = np.array([max(map(len, pair)) > limit for pair in chunk])
                    found[is_long & (found != Verdict.BLANK)] = Verdict.CHARACTERS
                if item.corpus.variant is not None:
                    found[[pair == NO_FORM for pair in chunk]] = Verdict.NO_VARIANT
                verdicts += found.tobytes()
                kept = zip(chunk, found == Verdict.KEPT, strict=True)
                num_held_out += sum(is_kept and pair in held_out for pair, is_kept in kept)
                if filters.drop_duplicates:
                    hashes.append(np.array([pair_hash(*pair) for pair in chunk], dtype=np.uint64))
        ends.append(len(verdicts))
        warn_of_held_out(item.label, num_held_out)
    codes = np.frombuffer(verdicts, dtype=np.uint8)
    if filters.drop_duplicates:
        mark_duplicates(codes, np.concatenate(hashes))
    return np.split(codes, ends[1:-1])


def _require_pairs(filtered: FilteredCorpora, places: KeyPlaces) -> None:
    for item, verdicts in zip(filtered.files, filtered.verdicts, strict=True):
        if verdicts.all():
            report = report_corpus(item.direction.name, item.corpus.label, verdicts)
            first = next(item.pairs(may_be_blank=True)) if len(verdicts) == 1 else ("", "")
            notes = one_line(item.source, first[0]) or one_line(item.target, first[1])
            with places.blame(item.key):
                raise DataError(f"{item.source}: nothing is left to train on: {report}{notes}")


def _tokenise(
    filtered: FilteredCorpora,
    data: DataConfig,
    vocabularies: Vocabularies,
    writer: StoreWriter,
    should_stop: ShouldStop,
) -> FilteredCorpora:
    """Store the pairs that are short enough; the verdicts with those that are not."""
    pieces = (load_pieces(vocabularies.source_path), load_pieces(vocabularies.target_path))
    final = []
    for item, verdicts in zip(filtered.files, filtered.verdicts, strict=True):
        tag = (pieces[0].piece_to_id(tag_piece(item.direction)),) if data.is_tagged else ()
        lines = until_stopped(item.pairs(may_be_blank=True), should_stop)
        final.append(_tokenise_corpus(lines, verdicts, data, writer, pieces=pieces, tag=tag))
        writer.reports.append(report_corpus(item.direction.name, item.corpus.label, final[-1]))
    return FilteredCorpora(files=filtered.files, verdicts=tuple(final))


def _tokenise_corpus(
    lines: Iterator[tuple[str, str]],
    verdicts: NDArray[np.uint8],
    data: DataConfig,
    writer: StoreWriter,
    *,
    pieces: Sequence[sentencepiece.SentencePieceProcessor],
    tag: tuple[int, ...],
) -> NDArray[np.uint8]:
    """As `_tokenise`, for one corpus.

    Args:
        lines: All its pairs.
        verdicts: (P,) on them so far.
        data: Its `max_length` and `filters` are used.
        writer: Gets the pairs that are kept.
        pieces: Of the source and of the target.
        tag: What the source begins with.

    Returns:
        (P,) the final verdicts.
    """
    final = [np.zeros(0, dtype=np.uint8)]
    begin = 0
    while chunk := list(islice(lines, LINES_AT_ONCE)):
        final.append(verdicts[begin : begin + len(chunk)].copy())
        begin += len(chunk)
        kept = np.flatnonzero(final[-1] == Verdict.KEPT).tolist()
        sources, targets = (
            side.encode([chunk[number][place] for number in kept])
            for place, side in enumerate(pieces)
        )
        for number, source, target in zip(kept, sources, targets, strict=True):
            rows = [*tag, *source, EOS_ID], [*target, EOS_ID]
            verdict = verdict_on_lengths(
                *map(len, rows), max_length=data.max_length, config=data.filters
            )
            if not source or not target:
                verdict = Verdict.BLANK  # nothing that SentencePiece's normalisation keeps
            if verdict is Verdict.KEPT:
                writer.add(*rows, chunk[number])
            else:
                final[-1][number] = verdict
    return np.concatenate(final)

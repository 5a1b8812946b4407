"""Reading of all text of a run: training text, vocabulary, held-out text.

Owns the order in which they are prepared, so that every error in them is raised before anything is
trained. Does not own files' formats.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from model.errors import DataError
from model.text.languages.tags import LanguagePair
from model.train.config.data import DataConfig, DirectionConfig, HeldOutCorpus, tag_piece
from model.train.config.experiment import Experiment, direction_pair
from model.train.config.regularisation import RegularisationConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.corpora import (
    CorpusFiles,
    FilteredCorpora,
    check_same_text,
    filter_corpora,
    find_corpora,
    open_text,
    text_ingredients,
    write_text_facts,
)
from model.train.data.filtering import CorpusReport
from model.train.data.held_out import DevText, held_out_pairs
from model.train.data.mixture import Drawing, MixtureEntry, TrainingPairs, apply_temperature
from model.train.data.parallel import ParallelText, TokenisedPairs, read_parallel, tokenise
from model.train.data.store import StoredPairs, check_cache
from model.train.data.subwords import SegmentDrawer
from model.train.data.vocabulary import (
    EOS_ID,
    Vocabularies,
    check_vocabularies,
    load_pieces,
    thin,
    train_vocabularies,
    vocabulary_paths,
)
from model.train.stopping import ShouldStop, never

CACHE_FOLDER = "text"
"""Folder of the tokenised text in a run's folder, unless another is given."""

_VOCABULARY_KEYS = ("vocabulary.size", "vocabulary.normalisation", "data.train")
"""What keeps a vocabulary from being trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportText:
    """A held-out corpus that is scored at the end.

    Attributes:
        text: All of its lines, however many are scored while training.
        pair: Its direction.
        pairs: Its tokens, where its loss chooses the weights; None elsewhere.
    """

    text: ParallelText
    pair: LanguagePair
    pairs: TokenisedPairs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunText:
    """Text of a run, tokenised.

    Attributes:
        vocabularies: Trained on the training split only.
        reports: What became of each training corpus.
        pairs: The training text.
        dev: Held-out text by name; the first of each direction chooses the weights.
        report: Text to score at the end, by split and corpus.
        ingredients: What the training text is made of, from `text_ingredients`.
    """

    vocabularies: Vocabularies
    reports: tuple[CorpusReport, ...]
    pairs: TrainingPairs
    dev: Mapping[str, DevText]
    report: Mapping[str, ReportText]
    ingredients: Mapping[str, str]


def read_text(
    experiment: Experiment,
    data_folder: Path,
    output: Path,
    *,
    is_vocabulary_there: bool,
    is_resumed: bool = False,
    cache: Path | None = None,
    places: KeyPlaces | None = None,
    compare: Callable[[Mapping[str, str]], None] | None = None,
    should_stop: ShouldStop = never,
) -> RunText:
    """Everything a run needs; trains the vocabulary unless it is there.

    Args:
        experiment: What to read.
        data_folder: Holds the language pairs' folders.
        output: Folder of the run; has or gets the vocabulary, and gets `text.json` unless there is
            `compare`.
        is_vocabulary_there: Whether it has it.
        is_resumed: The run has begun; its text must be what it was.
        cache: Folder of tokenised text; None for `output`/text.
        places: Where the experiment's keys stand.
        compare: Given on the workers that only read what the first one has prepared; raises if
            the ingredients are not the first one's, before text is tokenised.
        should_stop: Checked often; all of it can be done again.

    Raises:
        DataError: Text is missing, misaligned or empty, or too little for the vocabulary, or a dev
            corpus has only pairs that are too long; the message names its key.
        StoppedError: `should_stop` returned true.
        TrainingError: The run that is resumed began with other text, or a file cannot be written.
    """
    data, places = experiment.data, places or KeyPlaces()
    if cache is not None:
        check_cache(cache)
    corpora = find_corpora(data, data_folder, places)
    held_out = _read_held_out(data, data_folder, places)
    known = held_out_pairs(held_out)
    filtered = None
    if is_vocabulary_there:
        vocabularies = vocabulary_paths(experiment.vocabulary, output)
        check_vocabularies(
            experiment.vocabulary, vocabularies, tags=_tags(experiment), places=places
        )
    else:
        filtered = filter_corpora(corpora, data, places, should_stop, known)
        with places.blame("vocabulary", *_VOCABULARY_KEYS):
            vocabularies = _train_vocabularies(experiment, filtered, output, should_stop)
    ingredients = text_ingredients(corpora, data, vocabularies, should_stop)
    if compare is not None:
        compare(ingredients)
    if is_resumed:
        check_same_text(output, ingredients)
    dev = _dev_texts(experiment, held_out, vocabularies, places)  # before hours of tokenising
    stored = open_text(
        corpora,
        data,
        vocabularies,
        cache=cache or output / CACHE_FOLDER,
        ingredients=ingredients,
        places=places,
        filtered=filtered,
        should_stop=should_stop,
        held_out=known,
    )
    if compare is None:
        write_text_facts(output, ingredients, stored.reports)
    with places.blame("data" if data.is_tagged else "data.train", "data.temperature"):
        pairs = _mixed(experiment, corpora, stored, vocabularies)
    return RunText(
        vocabularies=vocabularies,
        reports=stored.reports,
        pairs=pairs,
        dev=dev,
        report=_report_texts(experiment, held_out, vocabularies),
        ingredients=ingredients,
    )


def _held_out_name(experiment: Experiment, direction: DirectionConfig, name: str) -> str:
    """Name of a held-out text among scores, with its direction where directions are listed."""
    return f"{direction.name}/{name}" if experiment.data.is_tagged else name


def choosing_names(experiment: Experiment) -> tuple[str, ...]:
    """Names of the texts that choose the weights: the first dev corpus of each direction."""
    return tuple(
        _held_out_name(experiment, direction, direction.dev_corpora[0].name)
        for direction in experiment.data.directions
    )


def _train_vocabularies(
    experiment: Experiment, filtered: FilteredCorpora, output: Path, should_stop: ShouldStop
) -> Vocabularies:
    source, target = (
        thin(
            filtered.lines(side),
            num_lines=filtered.num_kept,
            limit=experiment.vocabulary.max_lines,
        )
        for side in ("source", "target")
    )
    return train_vocabularies(
        experiment.vocabulary,
        output,
        source=source,
        target=target,
        tags=_tags(experiment),
        should_stop=should_stop,
    )


def _tags(experiment: Experiment) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(tag_piece, experiment.data.pairs)))


def _read_held_out(
    data: DataConfig, data_folder: Path, places: KeyPlaces
) -> dict[tuple[DirectionConfig, str], ParallelText]:
    """Held-out text by direction and name, such as "dev/held-out"."""
    found: dict[tuple[DirectionConfig, str], ParallelText] = {}
    for key, direction in zip(data.keys, data.directions, strict=True):
        named = {
            f"{key}.{name}[{number}]": corpus
            for name, corpora in (
                ("report", direction.report_corpora),
                ("dev", direction.dev_corpora),
            )
            for number, corpus in enumerate(corpora)
        }
        for place, corpus in named.items():
            if (direction, corpus.name) not in found:
                with places.blame(place):
                    found[direction, corpus.name] = _read(data_folder, direction, corpus)
    return found


def _read(data_folder: Path, direction: DirectionConfig, held_out: HeldOutCorpus) -> ParallelText:
    return read_parallel(
        data_folder / held_out.folder / held_out.split,
        held_out.corpus,
        source_language=direction.source_language,
        target_language=direction.target_language,
    )


def _dev_texts(
    experiment: Experiment,
    held_out: Mapping[tuple[DirectionConfig, str], ParallelText],
    vocabularies: Vocabularies,
    places: KeyPlaces,
) -> dict[str, DevText]:
    data, limit = experiment.data, experiment.run.max_dev_sentences or None
    found = {}
    for key, direction in zip(data.keys, data.directions, strict=True):
        for number, corpus in enumerate(direction.dev_corpora):
            text = held_out[direction, corpus.name].first(limit)
            pairs = _tokenise(experiment, direction, vocabularies, text)
            if not len(pairs):
                with places.blame(f"{key}.dev[{number}]"):
                    raise DataError(
                        f"{corpus.name}: nothing is left for the dev loss: each of the {len(text)}"
                        " pairs has a side that is empty when normalised, or of more tokens than"
                        f" data.max_length ({data.max_length})"
                    )
            found[_held_out_name(experiment, direction, corpus.dev_name)] = DevText(
                text=text,
                pairs=pairs,
                pair=direction_pair(experiment, direction),
                is_choosing=corpus == direction.dev_corpora[0],
            )
    return found


def _report_texts(
    experiment: Experiment,
    held_out: Mapping[tuple[DirectionConfig, str], ParallelText],
    vocabularies: Vocabularies,
) -> dict[str, ReportText]:
    found = {}
    for direction in experiment.data.directions:
        chosen_by = direction.dev_corpora[0] if experiment.run.metric == "loss" else None
        for corpus in (direction.dev_corpora[0], *direction.report_corpora):
            text, pairs = held_out[direction, corpus.name], None
            if corpus == chosen_by:
                pairs = _tokenise(experiment, direction, vocabularies, text)
            found[_held_out_name(experiment, direction, corpus.name)] = ReportText(
                text=text, pair=direction_pair(experiment, direction), pairs=pairs
            )
    return found


def _mixed(
    experiment: Experiment,
    corpora: tuple[CorpusFiles, ...],
    stored: StoredPairs,
    vocabularies: Vocabularies,
) -> TrainingPairs:
    data = experiment.data
    entries = [
        MixtureEntry(
            direction=data.directions.index(item.direction),
            num_pairs=report.num_kept,
            copies=item.corpus.copies,
        )
        for item, report in zip(corpora, stored.reports, strict=True)
    ]
    drawing = None
    if data.regularisation is not None:
        drawing = _drawing(experiment, data.regularisation, vocabularies)
    return TrainingPairs(
        stored,
        apply_temperature(entries, data.temperature),
        seed=experiment.run.seed,
        drawing=drawing,
    )


def _drawing(
    experiment: Experiment, config: RegularisationConfig, vocabularies: Vocabularies
) -> Drawing:
    source, target = (
        SegmentDrawer(
            load_pieces(path),
            kind=experiment.vocabulary.kind,
            config=config,
            user_symbols=experiment.vocabulary.user_symbols,
            seed=experiment.run.seed,
        )
        if is_drawn
        else None
        for path, is_drawn in (
            (vocabularies.source_path, config.is_source_drawn),
            (vocabularies.target_path, config.is_target_drawn),
        )
    )
    return Drawing(
        source=source,
        target=target,
        eos_id=EOS_ID,
        num_tags=1 if experiment.data.is_tagged else 0,
        max_length=experiment.data.max_length,
        batch_tokens=experiment.run.batch_tokens,
    )


def _tokenise(
    experiment: Experiment,
    direction: DirectionConfig,
    vocabularies: Vocabularies,
    text: ParallelText,
) -> TokenisedPairs:
    source, target = (
        load_pieces(path) for path in (vocabularies.source_path, vocabularies.target_path)
    )
    tags = [source.piece_to_id(tag_piece(direction))] if experiment.data.is_tagged else []
    return tokenise(
        text,
        encode_source=lambda lines: [[*tags, *ids] if ids else [] for ids in source.encode(lines)],
        encode_target=target.encode,
        eos_id=EOS_ID,
        max_length=experiment.data.max_length,
    )

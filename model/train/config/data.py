"""The `data` part of an experiment file: corpora, directions, mixture, filters.

Owns its shape and the checks of its values. Does not own reading the file
(`model.train.config.experiment`) or the text (`model.train.data.corpora`).
"""

from dataclasses import dataclass, field
from typing import Literal

from model.checkpoint.description.names import name_problem
from model.errors import ConfigError, InputError
from model.text.languages.tags import canonical_tag, primary_language
from model.train.config.filters import FilterConfig, script_names
from model.train.config.regularisation import RegularisationConfig

Variant = Literal["lower", "title", "upper", "unpunctuated"]
"""Forms of a pair; `model.train.data.variants` says what each changes."""

_MIN_COPIES, _MAX_COPIES = 1e-6, 1_000_000
_MAX_LENGTH = 65_536  # a decoder allocates positions for it
_NO_NAMES = {"", ".", ".."}


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusConfig:
    """A training corpus.

    Attributes:
        name: `<folder>/train/<name>.<language>[.gz]`.
        copies: How often its pairs occur in an epoch; with 0.5, each half of them in turn.
        licence: As the corpus states it; goes into the checkpoint's card.
        url: Where the corpus comes from.
        source_file: Another file for the source side, such as a back-translation; like `--output`
            it is looked for from the working folder.
        target_file: Another file for the target side, such as what a teacher translated.
        variant: Another form of its pairs, as people also type; pairs without one are left out.
        max_characters: Its pairs with a longer side are left out; None keeps them.
    """

    name: str
    licence: str
    copies: float = 1
    url: str | None = None
    source_file: str | None = None
    target_file: str | None = None
    variant: Variant | None = None
    max_characters: int | None = None

    def __post_init__(self) -> None:
        """Reject an empty name or licence, and a number of copies that cannot be."""
        for name, value in (("name", self.name), ("licence", self.licence)):
            if not value.strip():
                raise ConfigError(f"data.train.{name} is {value!r}; it must not be empty")
        for name, value in (
            ("name", self.name),
            ("licence", self.licence),
            ("url", self.url or ""),
        ):
            if problem := name_problem(value):  # the checkpoint would be refused at the end
                raise ConfigError(f"data.train.{name} {problem}")
        if not _MIN_COPIES <= self.copies <= _MAX_COPIES:
            raise ConfigError(
                f"data.train.copies is {self.copies:g}; it must be from {_MIN_COPIES:f} to"
                f" {_MAX_COPIES}"
            )
        if self.max_characters is not None and self.max_characters < 1:
            raise ConfigError(
                f"data.train.max_characters is {self.max_characters}; it must be at least 1"
            )

    @property
    def label(self) -> str:
        """Name that no other corpus of its direction has."""
        files = " + ".join(name for name in (self.source_file, self.target_file) if name)
        parts = [self.name, *([self.variant] if self.variant else [])]
        if self.max_characters is not None:
            parts.append(f"at most {self.max_characters} characters")
        name = ", ".join(parts)
        return f"{name} with {files}" if files else name


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutCorpus:
    """Held-out text, which is scored: `<folder>/<split>/<corpus>.<language>[.gz]`.

    Attributes:
        folder: Of a language pair, below the data folder.
        split: Such as "test".
        corpus: Such as "newstest2019".
        name: Tells it from the others of its direction: "test/newstest2019", after the folder if
            that is not the direction's own.
    """

    folder: str
    split: str
    corpus: str
    name: str

    @property
    def dev_name(self) -> str:
        """As `name`, but the corpus alone where it is of the direction's own dev split."""
        return self.corpus if self.name == f"dev/{self.corpus}" else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionConfig:
    """One direction of translation and its text.

    Attributes:
        folder: Folder of the language pair below the data folder, such as "en-zh".
        source_language: Source files' suffix.
        target_language: Target files' suffix.
        source_tag: The source's BCP-47 tag when the suffix says less ("zh" against "zh-Hans").
        target_tag: The target's, likewise.
        train: Corpora of `<folder>/train`.
        dev: Names of corpora of `<folder>/dev`, such as "newstest2017", or of another folder, such
            as "zh-en/dev/newstest2017"; the first one chooses the best weights.
        report: More corpora to score once, at the end, for the card, each with its split, such
            as "test/newstest2019", or with folder and split, such as "zh-en/test/newstest2019":
            what was written in one language and translated is another test the other way round.
    """

    folder: str
    source_language: str
    target_language: str
    train: tuple[CorpusConfig, ...]
    dev: tuple[str, ...]
    report: tuple[str, ...] = ()
    source_tag: str | None = None
    target_tag: str | None = None

    def __post_init__(self) -> None:
        """Reject a direction without text, or with text that is named twice."""
        for name, value in (("data.train", self.train), ("data.dev", self.dev)):
            if not value:
                raise ConfigError(f"{name} names no corpus; it must name at least one")
        labels = [corpus.label for corpus in self.train]
        repeated = sorted({label for label in labels if labels.count(label) > 1})
        if repeated:
            raise ConfigError(f"data.train names {repeated[0]!r} twice; give it copies instead")
        for name, entries, shortest in (
            ("data.dev", self.dev, "corpus"),
            ("data.report", self.report, "split/corpus"),
        ):
            for entry in entries:
                parts = entry.split("/")
                lengths = {shortest.count("/") + 1, 3}
                if len(parts) not in lengths or not _NO_NAMES.isdisjoint(parts):
                    raise ConfigError(
                        f"{name} has {entry!r}; it must be {shortest} or folder/split/corpus"
                    )
        self._check_held_out()
        for side in ("source", "target"):
            try:
                getattr(self, side)
            except InputError as error:
                key = f"{side}_tag" if getattr(self, f"{side}_tag") else f"{side}_language"
                value = getattr(self, key)
                raise ConfigError(f"data.{key} is {value!r}: {error}") from error

    def _check_held_out(self) -> None:
        """Reject held-out text that is named twice, however it is written."""
        for name, entries, corpora in (
            ("data.dev", self.dev, self.dev_corpora),
            ("data.report", self.report, self.report_corpora),
        ):
            for number, entry in enumerate(entries):
                if corpora[number] in corpora[:number]:
                    raise ConfigError(
                        f"{name}[{number}] is {entry!r}, which is named before it; each corpus"
                        " must be named once"
                    )

    @property
    def name(self) -> str:
        """Source and target suffix, such as "zh-en"; the folder may serve both directions."""
        return f"{self.source_language}-{self.target_language}"

    @property
    def dev_corpora(self) -> tuple[HeldOutCorpus, ...]:
        """The corpora of `dev`."""
        return tuple(
            self._held_out(entry if "/" in entry else f"dev/{entry}") for entry in self.dev
        )

    @property
    def report_corpora(self) -> tuple[HeldOutCorpus, ...]:
        """The corpora of `report`."""
        return tuple(map(self._held_out, self.report))

    def _held_out(self, entry: str) -> HeldOutCorpus:
        *folders, split, corpus = entry.split("/")
        (folder,) = folders or (self.folder,)
        name = f"{split}/{corpus}"
        if folder != self.folder:
            name = f"{folder}/{name}"
        return HeldOutCorpus(folder=folder, split=split, corpus=corpus, name=name)

    @property
    def source(self) -> str:
        """The source's canonical tag."""
        return canonical_tag(self.source_tag or self.source_language)

    @property
    def target(self) -> str:
        """The target's canonical tag."""
        return canonical_tag(self.target_tag or self.target_language)


def tag_piece(direction: DirectionConfig) -> str:
    """The source piece that names a direction's target language (Johnson et al. 2017).

    No text is ever encoded to it: it is a control symbol of the vocabulary.
    """
    return f">>{direction.target}<<"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Text of a run: training corpora, held-out corpora, and what is done to them.

    One direction is described by the keys of `DirectionConfig` themselves; several, which one
    network then learns together, by a list of them under `pairs`.

    Attributes:
        folder: As in `DirectionConfig`, like the seven keys that follow.
        pairs: Several directions. A tag before the source names the target language.
        temperature: T: a direction with n pairs is drawn in proportion to n^(1/T); 1 leaves them
            as they are, a large one makes all equal (Arivazhagan et al. 2019). With one direction
            it must be 1.
        max_length: Pairs with a longer side, in tokens with EOS and tag, are left out.
        filters: What else is left out.
        regularisation: Draws another segmentation each time a pair is read; none by default.
    """

    folder: str = ""
    source_language: str = ""
    target_language: str = ""
    train: tuple[CorpusConfig, ...] = ()
    dev: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    source_tag: str | None = None
    target_tag: str | None = None
    pairs: tuple[DirectionConfig, ...] = ()
    temperature: float = 1.0
    max_length: int = 128
    filters: FilterConfig = field(default_factory=FilterConfig)
    regularisation: RegularisationConfig | None = None

    def __post_init__(self) -> None:
        """Reject a run without text, or one that is described in both ways."""
        shortest = 3 if self.is_tagged else 2  # a piece and EOS
        if not shortest <= self.max_length <= _MAX_LENGTH:
            raise ConfigError(
                f"data.max_length is {self.max_length}; it must be from {shortest} to {_MAX_LENGTH}"
            )
        if not 1.0 <= self.temperature <= 1e6:
            raise ConfigError(f"data.temperature is {self.temperature}; it must be at least 1")
        if self.temperature != 1.0 and len(self.pairs) < 2:
            raise ConfigError(
                f"data.temperature is {self.temperature}; it must be 1 where there is one direction"
            )
        if self.pairs:
            given = [name for name in _DIRECTION_KEYS if getattr(self, name)]
            if given:
                raise ConfigError(f"data.{given[0]} and data.pairs are both set; put it into pairs")
            self._check_pairs()
            self._check_filters()
            return
        missing = [name for name in _DIRECTION_KEYS[:3] if not getattr(self, name)]
        if missing:
            raise ConfigError("; ".join(f"data.{name} is missing" for name in missing))
        self._check_filters()  # of a direction, whose own checks are the same

    def _check_filters(self) -> None:
        tags = [tag for item in self.directions for tag in (item.source, item.target)]
        if self.filters.min_script_share:
            for tag in tags:
                script_names(tag)  # refuses a language whose scripts are not known
        if self.filters.language_margin and len({primary_language(tag) for tag in tags}) < 2:
            raise ConfigError(
                f"data.filters.language_margin is {self.filters.language_margin}; it must be 0"
                f" where all text is of one language, {primary_language(tags[0])!r}"
            )

    def _check_pairs(self) -> None:
        for what, found in (
            ("suffixes", [pair.name for pair in self.pairs]),
            ("tags", [f"{pair.source} → {pair.target}" for pair in self.pairs]),
        ):
            repeated = [name for name in found if found.count(name) > 1]
            if repeated:
                raise ConfigError(f"data.pairs has the {what} {repeated[0]} twice")

    @property
    def directions(self) -> tuple[DirectionConfig, ...]:
        """The directions, however they were described."""
        if self.pairs:
            return self.pairs
        return (DirectionConfig(**{name: getattr(self, name) for name in _DIRECTION_KEYS}),)

    @property
    def is_tagged(self) -> bool:
        """Whether directions are listed under `pairs`.

        Their sources then begin with the target's tag, and held-out text is named with its
        direction, even if there is only one.
        """
        return bool(self.pairs)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the directions were described by: "data", or "data.pairs[0]" and on."""
        return tuple(f"data.pairs[{number}]" for number in range(len(self.pairs))) or ("data",)


_DIRECTION_KEYS = (
    "folder",
    "source_language",
    "target_language",
    "train",
    "dev",
    "report",
    "source_tag",
    "target_tag",
)

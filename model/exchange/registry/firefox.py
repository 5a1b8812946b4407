"""Firefox Translations' registry: pairs and sizes → listings and offers.

Owns the layout of `db/models.json`: `models` by pair, each a list of models with an architecture,
a release status, files by kind, and scores. The files come packed with gzip; the registry says what
they are once unpacked.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from model.errors import InputError, RegistryError, shown
from model.exchange.registry.documents import Documents
from model.exchange.registry.fields import Fields, document, objects_of
from model.exchange.registry.listing import (
    Content,
    Listing,
    Offer,
    RemoteFile,
    Score,
    below,
    checked_files,
    checksum,
    linked,
    path_problem,
)
from model.exchange.registry.names import FirefoxName
from model.text.languages.tags import canonical_tag

FIREFOX_VARIABLE = "DRAGOMAN_FIREFOX_URL"
FIREFOX_URL = "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data"
LICENCE = "MPL-2.0"

_INDEX = "db/models.json"
_KINDS = ("model", "vocab", "srcVocab", "trgVocab", "lexicalShortlist")
_PACKED_SUFFIX = ".gz"
_MAX_FILE_BYTES = 2**31
_STATUSES = ("Release", "Release Desktop", "Release Android", "Beta", "Nightly")
_METRICS = (("comet22", "COMET-22"), ("bleu", "BLEU"), ("chrf", "chrF"))


class Firefox:
    """The registry, or a mirror of it.

    Args:
        base: The folder that has `db/models.json`, and the paths of the files below it.
        documents: Way to its index.
    """

    def __init__(self, base: str, documents: Documents) -> None:
        self._base, self._documents = base, documents

    def find(self, name: FirefoxName) -> Listing:
        """The listing of a pair's model: of the architecture that is named, or the best released.

        Raises:
            RegistryError: There is none.
        """
        entries = list(self._entries(name.source, name.target))
        if not entries:
            raise RegistryError(self._url(), f"has no {name.source}-{name.target}")
        entry = _chosen(entries, name.architecture)
        if entry is None:
            offered = ", ".join(dict.fromkeys(_label(one) for one in entries))
            problem = f"has no released model {name}; for that pair there is {offered}"
            raise RegistryError(self._url(), problem)
        return self._listing(name, entry)

    def offers(self, source: str, target: str) -> tuple[Offer, ...]:
        """The released models of a direction, the best first.

        Args:
            source: A canonical tag, or one with less in it: `zh` is `zh-Hans` too.
            target: Likewise.
        """
        entries = sorted(self._entries(source, target), key=_rank)
        return tuple(
            Offer(
                name=f"firefox:{_spelt(source)}-{_spelt(target)}/{entry.text('architecture')}",
                pairs=((_with_script(source), _with_script(target)),),
                licence=LICENCE,
                size=_size(entry),
                score=next(iter(_scores(entry)), None),
                note=_label(entry),
            )
            for entry in entries
            if entry.optional_text("releaseStatus") is not None
        )

    def _url(self) -> str:
        return below(self._base, _INDEX)

    def _entries(self, source: str, target: str) -> Iterator[Fields]:
        index = document(self._url(), self._documents.get(self._url()))
        models = index.object("models")
        wanted = (_with_script(source), _with_script(target))
        for pair, found in models.values.items():
            if _tags(pair) == wanted:
                yield from objects_of(index.url, f"models.{pair}", found)

    def _listing(self, name: FirefoxName, entry: Fields) -> Listing:
        architecture = entry.text("architecture")
        files = entry.object("files")
        kinds = [kind for kind in _KINDS if files.optional_object(kind) is not None]
        vocabularies = {"vocab", "srcVocab", "trgVocab"} & set(kinds)
        if "model" not in kinds or vocabularies not in ({"vocab"}, {"srcVocab", "trgVocab"}):
            raise entry.error("files", "has no model with its vocabulary")
        listed = [self._file(files.object(kind)) for kind in kinds]
        model = files.object("model")
        return Listing(
            name=str(
                FirefoxName(source=name.source, target=name.target, architecture=architecture)
            ),
            folder=f"firefox-{name.source}-{name.target}-{architecture}",
            version=(model.optional_text("uncompressedHash") or model.text("hash"))[:16],
            registry="Firefox Translations",
            files=checked_files(listed, files.url),
            licence=LICENCE,
            pairs=((_with_script(name.source), _with_script(name.target)),),
            has_exact_pairs=True,
            scores=_scores(entry),
            description=f"Firefox Translations, {_label(entry)}",
            url="https://github.com/mozilla/translations",
        )

    def _file(self, item: Fields) -> RemoteFile:
        path = item.text("path")
        if problem := path_problem(path):
            raise item.error("path", f"is {shown(path)}, which {problem}")
        name = PurePosixPath(path).name
        is_packed = name.endswith(_PACKED_SUFFIX)
        unpacked = Content(
            size=item.optional_count("uncompressedSize"),
            checksum=checksum("sha256", item.optional_text("uncompressedHash"), item.url),
        )
        stored = Content(
            size=item.optional_count("size"),
            checksum=checksum("sha256", item.optional_text("hash"), item.url),
        )
        return RemoteFile(
            path=name.removesuffix(_PACKED_SUFFIX),
            url=linked(item.url, below(self._base, path)),
            stored=stored if is_packed else unpacked,
            unpacked=unpacked if is_packed else None,
            max_bytes=_MAX_FILE_BYTES,
        )


def _chosen(entries: list[Fields], architecture: str | None) -> Fields | None:
    """The best model: of the named architecture, released or not; without one, a released one."""
    fitting = [
        entry
        for entry in entries
        if (entry.optional_text("architecture") == architecture)
        or (architecture is None and entry.optional_text("releaseStatus") in _STATUSES)
    ]
    return min(fitting, key=_rank, default=None)


def _rank(entry: Fields) -> tuple[int, float]:
    """Released before not released; then by the first score that is published."""
    status = entry.optional_text("releaseStatus")
    place = _STATUSES.index(status) if status in _STATUSES else len(_STATUSES)
    return place, -next((score.value for score in _scores(entry)), 0.0)


def _scores(entry: Fields) -> tuple[Score, ...]:
    """Scores by test set; those of FLORES first, COMET before BLEU."""
    metrics = entry.optional_object("metrics")
    flores = entry.optional_object("flores")
    if flores is not None:
        metrics = Fields(url=entry.url, place="", values={"FLORES": flores.values})
    if metrics is None:
        return ()
    test_sets = sorted(metrics.values, key=lambda name: ("flores" not in name.lower(), name))
    scores = []
    for test_set in test_sets:
        values = metrics.optional_object(test_set)
        for key, metric in (*_METRICS, ("comet", "COMET")):
            value = None if values is None else values.optional_number(key)
            if value is not None:
                scores.append(Score(metric=metric, value=value, test_set=test_set))
    return tuple(scores)


def _size(entry: Fields) -> int | None:
    files = entry.optional_object("files")
    items = [files.optional_object(kind) for kind in _KINDS] if files is not None else []
    sizes = [item.optional_count("uncompressedSize") for item in items if item is not None]
    return sum(size for size in sizes if size is not None) or None


def _label(entry: Fields) -> str:
    status = entry.optional_text("releaseStatus") or "not released"
    return f"{entry.optional_text('architecture') or 'unknown architecture'} ({status})"


def _tags(pair: str) -> tuple[str, str] | None:
    """The languages of a pair: `de-en`, `zh_hant-en` or `zh-Hant-en` where a script follows."""
    parts = [part.replace("_", "-") for part in pair.split("-")]
    cut = 2 if len(parts) > 2 and len(parts[1]) == 4 else 1
    try:
        source, target = (canonical_tag("-".join(part)) for part in (parts[:cut], parts[cut:]))
    except InputError:
        return None
    return _with_script(source), _with_script(target)


def _spelt(tag: str) -> str:
    """A tag as in names of models, where Chinese alone is simplified."""
    return "zh" if tag == "zh-Hans" else tag


def _with_script(tag: str) -> str:
    """The tag that a checkpoint has: Chinese alone is simplified, in this registry too."""
    return "zh-Hans" if tag == "zh" else tag

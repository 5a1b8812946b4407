"""Hugging Face's hub: repositories → listings, a search → offers.

Owns the layout of its public HTTP interface: `/api/models/{repository}/revision/{revision}` with
`siblings`, `/{repository}/resolve/{commit}/{file}`, `/api/models` with filters. Which of the files
are needed is `hub_files`'.
"""

import re
from urllib.parse import quote, urlencode

from model.errors import InputError, RegistryError, shown
from model.exchange.registry.documents import Documents
from model.exchange.registry.fields import Fields, document, objects_of
from model.exchange.registry.hub_files import archive_among, needed_files
from model.exchange.registry.listing import (
    Content,
    Listing,
    Offer,
    RemoteFile,
    Score,
    below,
    checked_files,
    checksum,
    leaves_folder,
)
from model.exchange.registry.names import HubName
from model.exchange.registry.retries import check_status
from model.exchange.registry.transport import REDIRECTS, content_length
from model.exchange.spdx import spdx, stated_licence
from model.text.languages.tags import canonical_tag, primary_language

HUB_VARIABLE = "DRAGOMAN_HUB_URL"
HUB_URL = "https://huggingface.co"

_COUNT = re.compile(r"[0-9]{1,18}")
_ETAG = re.compile(r'(?:W/)?"([0-9a-f]{40}|[0-9a-f]{64})"')
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OPUS_PAIR = re.compile(
    r"opus-mt-(?:tc-[a-z]+-|tiny-)?([a-z]{2,3}(?:_[A-Za-z]+)?)-([a-z]{2,3}(?:_[A-Za-z]+)?)"
)
_MAX_SCORES = 12
_MAX_OFFERS = 30
_LICENCE_TAG = "license:"


class Hub:
    """The hub, or a mirror of it.

    Args:
        base: Its address.
        documents: Way to its answers.
    """

    def __init__(self, base: str, documents: Documents) -> None:
        self._base, self._documents = base, documents

    def find(self, name: HubName) -> Listing:
        """The listing of a repository, at the commit that its revision is now.

        Raises:
            RegistryError: There is none, or it has no weights that could be converted.
        """
        revision = quote(name.revision, safe="")
        url = (
            below(self._base, f"api/models/{name.repository}/revision/") + f"{revision}?blobs=true"
        )
        found = document(url, self._documents.get(url))
        commit = found.text("sha")
        if not _COMMIT.fullmatch(commit):
            raise found.error("sha", "is no commit")
        files = self._files(found, name.repository, commit)
        short = name.repository.partition("/")[2]
        pairs = _pairs(short)
        card = found.optional_object("cardData") or Fields(url=url, place="cardData", values={})
        return Listing(
            name=str(name),
            folder=short,
            version=commit,
            registry="Hugging Face",
            files=files,
            archive=archive_among([file.path for file in files]),
            licence=_licence(found, card),
            pairs=pairs,
            languages=card.texts("language"),
            scores=_scores(found, card),
            description=f"{name.repository} at {commit[:12]}",
            url=below(self._base, name.repository),
        )

    def offers(self, source: str, target: str) -> tuple[Offer, ...]:
        """Models for translation that name both languages, the most downloaded first.

        Args:
            source: A canonical tag.
            target: Likewise.
        """
        filters = [("filter", "translation")]
        filters += [("filter", primary_language(tag)) for tag in (source, target)]
        more = [("sort", "downloads"), ("direction", "-1"), ("limit", str(_MAX_OFFERS))]
        url = below(self._base, "api/models") + "?" + urlencode(filters + more)
        found = objects_of(url, "", self._documents.get(url))
        offers = (_offer(item) for item in found)
        return tuple(
            offer for offer in offers if offer is not None and _fits(offer, source, target)
        )

    def _files(self, found: Fields, repository: str, commit: str) -> tuple[RemoteFile, ...]:
        siblings = {item.text("rfilename"): item for item in found.objects("siblings")}
        for path in filter(leaves_folder, siblings):
            raise RegistryError(found.url, f"lists a file {shown(path)}, which leaves the folder")
        needed = needed_files(tuple(siblings))
        if not needed:
            problem = f"{repository} has none of the files that hold weights, or several archives"
            raise RegistryError(found.url, problem)
        files = [self._file(siblings[path], path, repository, commit) for path in needed]
        return checked_files(files, found.url)

    def _file(self, item: Fields, path: str, repository: str, commit: str) -> RemoteFile:
        url = below(self._base, f"{repository}/resolve/{commit}/{path}")
        lfs = item.optional_object("lfs")
        if lfs is not None:
            known = checksum("sha256", lfs.text("sha256"), item.url)
        else:
            known = checksum("git-sha1", item.optional_text("blobId"), item.url)
        if "size" in item.values:
            stored = Content(size=item.count("size"), checksum=known)
        else:  # some mirrors list names alone
            stored = self._documents.retries.run(lambda: self._stated(url, commit))
        return RemoteFile(path=path, url=url, stored=stored)

    def _stated(self, url: str, commit: str) -> Content:
        """What the headers of a file say: of large ones, on the redirect to where they are."""
        reply = self._documents.transport.request(url, method="HEAD", is_following=False)
        reply.close()
        if reply.status not in REDIRECTS:
            check_status(reply, url)
        headers = reply.headers
        if (found := headers.get("X-Repo-Commit", commit)) != commit:
            raise RegistryError(url, f"is of commit {shown(found)}; {commit} is wanted")
        size = _COUNT.fullmatch(headers.get("X-Linked-Size", ""))
        tag = _ETAG.fullmatch(headers.get("X-Linked-Etag", headers.get("ETag", "")))
        if tag is None or (size is None and reply.status in REDIRECTS):
            raise RegistryError(url, "has neither in its listing nor in its headers a checksum")
        return Content(
            size=int(size[0]) if size else content_length(headers),
            checksum=checksum("git-sha1" if len(tag[1]) == 40 else "sha256", tag[1], url),
        )


def _licence(found: Fields, card: Fields) -> str | None:
    """The card's licence; where that is "other", its name; else the tag."""
    stated = stated_licence(card.texts("license"), card.texts("license_name"))
    tags = (tag for tag in found.texts("tags") if tag.startswith(_LICENCE_TAG))
    return stated or next((spdx(tag.removeprefix(_LICENCE_TAG)) for tag in tags), None)


def _scores(found: Fields, card: Fields) -> tuple[Score, ...]:
    """What `model-index` publishes, the first of it."""
    scores: list[Score] = []
    for entry in found.objects("model-index") or card.objects("model-index"):
        for result in entry.objects("results"):
            scores += _scores_of(result)
    return tuple(scores[:_MAX_SCORES])


def _scores_of(result: Fields) -> list[Score]:
    task, data = result.optional_object("task"), result.optional_object("dataset")
    pair = (task.optional_text("name") or "").removeprefix("Translation ") if task else ""
    test_set = (data.optional_text("name") or "") if data else ""
    scores = []
    for metric in result.objects("metrics"):
        value = metric.optional_number("value")
        kind = metric.optional_text("name") or metric.optional_text("type")
        if kind and value is not None:
            scores.append(Score(metric=kind, value=value, test_set=test_set, pair=pair))
    return scores


def _pairs(short: str) -> tuple[tuple[str, str], ...]:
    """The direction that the name of an OPUS-MT model says; none where it names groups."""
    match = _OPUS_PAIR.fullmatch(short)
    if match is None or "mul" in match.groups():
        return ()
    try:
        source, target = (canonical_tag(code.replace("_", "-")) for code in match.groups())
    except InputError:
        return ()
    is_two = len(primary_language(source)) == len(primary_language(target)) == 2
    return ((source, target),) if is_two else ()


def _offer(item: Fields) -> Offer | None:
    repository = item.optional_text("id") or item.optional_text("modelId")
    if repository is None or repository.count("/") != 1:
        return None
    downloads = item.optional_count("downloads")
    return Offer(
        name=f"hf:{repository}",
        pairs=_pairs(repository.partition("/")[2]),
        licence=_licence(item, Fields(url=item.url, place="", values={})),
        note="" if downloads is None else f"{downloads} downloads",
    )


def _fits(offer: Offer, source: str, target: str) -> bool:
    """Whether a model may have the direction: one that names another has not."""
    wanted = primary_language(source), primary_language(target)
    return not offer.pairs or any(
        (primary_language(one), primary_language(other)) == wanted for one, other in offer.pairs
    )

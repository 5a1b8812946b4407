"""The bundled weights as the papers of a release name them: their licences, text and hashes.

Owns the words of both papers: NOTICE (`python -m tools.weights NOTICE`, which a test compares) and
the components of a bill of materials. What the weights are and learned from is in their own
`config.json`; whom a corpus credits is written here, once a corpus.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.checkpoint.manifest import Licence, Manifest
from model.errors import CheckpointError

CHECKPOINTS = Path("checkpoints")
OWN_LICENCE = "Apache-2.0"
"""Of everything in the repository and in the image that is no weights."""

AUTHORS = {
    "3am-captions": "the authors of the 3AM dataset",
    "aosp-apps": "The Android Open Source Project and The LineageOS Project",
    "chat-apps": "the Matrix.org Foundation, New Vector, Mattermost and Kandra Labs (Zulip)",
    "cldr": "Unicode, Inc.",
    "debian-handbook": "Raphaël Hertzog, Roland Mas and the translators of their handbook",
    "electron-docs": "the Electron contributors",
    "esp-idf-docs": "Espressif Systems (Shanghai) Co., Ltd.",
    "formulae": "the contributors of Tatoeba and of the interface corpora",
    "gnome-help": "the GNOME Documentation Project and its translators",
    "k8s-docs": "The Kubernetes Authors",
    "mit-apps": "the authors of Wekan, Excalidraw, Uptime Kuma, Gogs, grocy and BookStack",
    "mobile-apps": "the Wikimedia Foundation, the Home Assistant Authors and DuckDuckGo",
    "mozilla-www": "Mozilla and its localisers",
    "opensource-guide": "GitHub and the contributors of the Open Source Guides",
    "opnsense": "the OPNsense project and its translators",
    "osm-terms": "the contributors of id-tagging-schema",
    "php-manual": "the PHP Documentation Group and its translators",
    "postgresql-docs": "The PostgreSQL Global Development Group and its Chinese translators",
    "python-docs": "the Python Software Foundation and the translators of its documentation",
    "refugee-phrasebook": "the contributors of the Refugee Phrasebook",
    "rust-book": "the authors of The Rust Programming Language, KaiserY and its other translators",
    "tatoeba": "the contributors of Tatoeba",
    "scratch": "the Scratch Foundation, the MIT Media Lab and translators",
    "tatoeba-more": "the contributors of Tatoeba",
    "tatoeba-back": "the contributors of Tatoeba",
    "tensorflow-docs": "The TensorFlow Authors",
    "thunderbird": "Mozilla, the Thunderbird project and its localisers",
    "tidb-docs": "PingCAP and the contributors of its documentation",
    "tldr-pages": "the tldr-pages team and contributors",
    "xquad-questions": "Google DeepMind, the authors of XQuAD and of SQuAD",
}
"""Whom a licence that asks for attribution wants named, by corpus."""

_SHARE_ALIKE = "-SA-"
_WIDTH = 96


class WeightsError(Exception):
    """Weights whose papers cannot be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write NOTICE."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="file to write")
    arguments = parser.parse_args(argv)
    try:
        arguments.output.write_text(notice(bundled(CHECKPOINTS)), encoding="utf-8")
    except (WeightsError, CheckpointError, OSError) as error:
        print(f"no notice: {error}", file=sys.stderr)
        return 1
    return 0


def bundled(folder: Path) -> list[Manifest]:
    """The manifests of all checkpoints in a folder, every file verified, in order of names.

    Raises:
        CheckpointError: One of them is damaged.
        WeightsError: There is none.
    """
    manifests = [read_manifest(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    if not manifests:
        raise WeightsError(f"{folder} has no checkpoint")
    return manifests


def image_licences(manifests: Iterable[Manifest]) -> str:
    """What code and weights together are under, as an SPDX expression."""
    return " AND ".join([OWN_LICENCE, *sorted({manifest.licence for manifest in manifests})])


def licence_problems(manifest: Manifest) -> list[str]:
    """Every corpus whose licence the licence of the weights does not keep.

    Weights that learned from share-alike text are published as adaptations of it: under the same
    licence, or the later version that it allows.
    """
    if _SHARE_ALIKE in manifest.licence:
        return []
    return [
        f"{manifest.name} is under {manifest.licence}, but {corpus.corpus} under {corpus.licence}"
        for corpus in manifest.licences
        if _SHARE_ALIKE in corpus.licence
    ]


def notice(manifests: Sequence[Manifest]) -> str:
    """The text of NOTICE.

    Raises:
        WeightsError: A corpus has nobody to credit, or a licence is not kept.
    """
    problems = [problem for manifest in manifests for problem in licence_problems(manifest)]
    if problems:
        raise WeightsError("; ".join(problems))
    weights = ", ".join(f"checkpoints/{manifest.name}" for manifest in manifests)
    terms = " and ".join(sorted({manifest.licence for manifest in manifests}))
    parts = [
        "Dragoman",
        _wrapped(
            f"Everything of this project but the weights and one trace is licensed under"
            f" {OWN_LICENCE}, whose text is LICENSE. The weights ({weights}) are licensed under"
            f" {terms}, whose text is in LICENSES. A Python wheel holds no weights. What else an"
            " image holds keeps its own licences, and the image's bill of materials names them."
        ),
        _wrapped(
            "The trace (benchmarks/soak/conversations-2023.csv.gz, in no wheel and no image) was"
            " made from the Azure LLM inference trace 2023 by Microsoft"
            " (https://github.com/Azure/AzurePublicDataset), CC-BY-4.0, whose text is in LICENSES:"
            " times count from its first request and are rounded, and one column is left out. Its"
            " authors (Patel, Choukse, Zhang, Shah, Goiri, Maleki, Bianchini: Splitwise, ISCA 2024)"
            " endorse neither this project nor its use."
        ),
        _wrapped(
            "The weights were made by training on the text below, whose sentences are no part of"
            " them or of this repository. Each corpus was taken from the address that is given,"
            " cut into pairs of sentences and filtered; its authors endorse neither this project"
            " nor its use. Licences are named as SPDX names them, and https://spdx.org/licenses"
            " has their texts."
        ),
    ]
    return "\n\n".join([*parts, *(_credits(manifest) for manifest in manifests)]) + "\n"


def _credits(manifest: Manifest) -> str:
    title = f"{manifest.name} ({manifest.description}): {manifest.licence}"
    lines = [_credit(corpus) for corpus in manifest.licences]
    return "\n".join([title, "-" * len(title), "", *lines])


def _credit(corpus: Licence) -> str:
    author = AUTHORS.get(corpus.corpus)
    if author is None:
        raise WeightsError(f"nobody is credited for the corpus {corpus.corpus}; AUTHORS names them")
    return f"* {corpus.corpus}, {corpus.licence}, by {author}\n  {corpus.url or 'not published'}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def environment_components(folder: Path) -> list[dict[str, Any]]:
    """The components of all checkpoints in a folder, with the hashes of their own listings."""
    components = []
    for manifest in bundled(folder):
        listing = (folder / manifest.name / CHECKSUMS_FILE).read_text(encoding="utf-8")
        components.append(component(asdict(manifest), listed_digests(listing)))
    return components


def listed_digests(listing: str) -> dict[str, str]:
    """The SHA-256 of every file by its name, as `sha256sum` lists them."""
    lines = (line.split(maxsplit=1) for line in listing.splitlines())
    return {name: digest for digest, name in lines}


def component(description: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    """One checkpoint as CycloneDX 1.6 has it: a machine-learning model with its files.

    Args:
        description: The content of its `config.json`.
        digests: SHA-256 of each of its files, by name.

    Raises:
        WeightsError: A file that the description names has no digest.
    """
    name, weights = description["name"], description["files"]["weights"]
    missing = sorted({*description["files"].values()} - digests.keys())
    if missing:
        raise WeightsError(f"{name}: no digest of {', '.join(missing)}")
    directions = [f"{pair['source']} to {pair['target']}" for pair in description["pairs"]]
    return {
        "type": "machine-learning-model",
        "bom-ref": f"weights:{name}@sha256:{digests[weights]}",
        "name": name,
        "version": f"sha256:{digests[weights]}",
        "description": f"{description['description']} ({', '.join(directions)})",
        "scope": "required",
        "hashes": [_hash(digests[weights])],
        "licenses": [{"expression": description["licence"]}],
        "components": [
            {
                "type": "file",
                "bom-ref": f"weights:{name}/{file}@sha256:{digest}",
                "name": file,
                "hashes": [_hash(digest)],
            }
            for file, digest in sorted(digests.items())
        ],
        "modelCard": {
            "modelParameters": {
                "approach": {"type": "supervised"},
                "task": "translation",
                "architectureFamily": "Transformer",
                "datasets": [_dataset(corpus) for corpus in description["licences"]],
            }
        },
    }


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def _dataset(corpus: Mapping[str, str | None]) -> dict[str, Any]:
    contents: dict[str, Any] = {"properties": [{"name": "licence", "value": corpus["licence"]}]}
    if corpus["url"] is not None:
        contents["url"] = corpus["url"]
    return {"type": "dataset", "name": corpus["corpus"], "contents": contents}


if __name__ == "__main__":
    sys.exit(main())

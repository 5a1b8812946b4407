"""The papers of the bundled weights: who is credited, which licence holds, which bytes they are."""

import hashlib
import tomllib
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from model.checkpoint.manifest import Licence, Manifest
from model.train.config.experiment import read_experiment
from support.running_server import ROOT
from tools.weights import (
    AUTHORS,
    OWN_LICENCE,
    WeightsError,
    bundled,
    component,
    environment_components,
    image_licences,
    licence_problems,
    main,
    notice,
)

CHECKPOINTS = ROOT / "checkpoints"
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
MANIFESTS = bundled(CHECKPOINTS)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest.name)
def test_what_learned_from_share_alike_text_is_share_alike(manifest: Manifest) -> None:
    assert licence_problems(manifest) == []


def test_other_weights_of_share_alike_text_are_a_problem() -> None:
    [german] = [manifest for manifest in MANIFESTS if manifest.name == "en-de-small"]
    assert licence_problems(replace(german, licence="CC-BY-4.0")) == [
        f"en-de-small is under CC-BY-4.0, but {corpus} under {licence}"
        for corpus, licence in (
            ("gnome-help", "CC-BY-SA-3.0"),
            ("debian-handbook", "CC-BY-SA-3.0"),
            ("xquad-questions", "CC-BY-SA-4.0"),
        )
    ]
    with pytest.raises(WeightsError, match="gnome-help under CC-BY-SA"):
        notice([replace(german, licence="CC-BY-4.0")])


def test_a_corpus_has_one_licence_and_weights_that_of_their_experiment() -> None:
    licences = defaultdict(set)
    for manifest in MANIFESTS:
        for corpus in manifest.licences:
            licences[corpus.corpus].add(corpus.licence)
    for path in EXPERIMENTS:
        experiment = read_experiment(path)
        corpora = [corpus for direction in experiment.data.directions for corpus in direction.train]
        for corpus in corpora:
            licences[corpus.name].add(corpus.licence)
        if any("-SA-" in corpus.licence for corpus in corpora):
            assert experiment.licence == "CC-BY-SA-4.0", path
        for manifest in MANIFESTS:
            assert manifest.name != experiment.name or manifest.licence == experiment.licence
    assert {name: found for name, found in licences.items() if len(found) > 1} == {}
    assert licences["gnome-help"] == {"CC-BY-SA-3.0"}


def test_the_card_names_every_licence_beside_its_corpus() -> None:
    for manifest in MANIFESTS:
        card = (CHECKPOINTS / manifest.name / manifest.files.card).read_text(encoding="utf-8")
        assert f"The weights are under {manifest.licence};" in card
        for corpus in manifest.licences:
            rows = [
                line for line in card.splitlines() if f"[{corpus.corpus}]({corpus.url})" in line
            ]
            assert rows
            assert all(row.endswith(f"| {corpus.licence} |") for row in rows)


def test_the_notice_is_that_of_the_checkpoints() -> None:
    written = (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert written == notice(MANIFESTS), "python -m tools.weights NOTICE writes it"
    for manifest in MANIFESTS:
        for corpus in manifest.licences:
            assert f"* {corpus.corpus}, {corpus.licence}, by {AUTHORS[corpus.corpus]}" in written
            assert f"  {corpus.url}\n" in written


def test_a_corpus_without_an_author_has_no_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = replace(MANIFESTS[0], licences=(Licence(corpus="stranger", licence="MIT"),))
    with pytest.raises(WeightsError, match="nobody is credited for the corpus stranger"):
        notice([stranger])
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("tools.weights.CHECKPOINTS", tmp_path / "empty")
    assert main([str(tmp_path / "NOTICE")]) == 1
    assert "has no checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "NOTICE").exists()


def test_every_licence_that_is_given_is_there_as_text() -> None:
    for manifest in MANIFESTS:
        text = (ROOT / "LICENSES" / f"{manifest.licence}.txt").read_text(encoding="utf-8")
        assert text.startswith("Attribution-ShareAlike 4.0 International")
    # As Creative Commons publishes them, to the byte.
    published = {
        "CC-BY-4.0": "fd3a263fe19ed8faa9068b43abaebafc02c77897b0c6fc09abc04bb592e5f16e",
        "CC-BY-SA-4.0": "7abe19ec9bb73b36141b999b861d24ad855e808bafe0f81e84cce28556f6c297",
    }
    for name, digest in published.items():
        text = (ROOT / "LICENSES" / f"{name}.txt").read_bytes()
        assert hashlib.sha256(text).hexdigest() == digest


def test_package_and_image_say_the_same() -> None:
    assert PROJECT["license"] == OWN_LICENCE
    assert PROJECT["license-files"] == ["LICENSE", "NOTICE"]
    assert image_licences(MANIFESTS) == "Apache-2.0 AND CC-BY-SA-4.0"
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f'org.opencontainers.image.licenses="{image_licences(MANIFESTS)}"' in dockerfile
    [copied] = [line.split() for line in dockerfile.splitlines() if line.endswith(" /files/")]
    assert {"LICENSE", "NOTICE"} <= {*copied}
    assert "COPY LICENSES /files/LICENSES" in dockerfile
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {"!LICENSE", "!LICENSES", "!NOTICE"} <= {*allowed}


def test_a_component_names_files_licence_and_text_of_its_weights() -> None:
    components = {found["name"]: found for found in environment_components(CHECKPOINTS)}
    assert [*components] == [manifest.name for manifest in MANIFESTS]
    for manifest in MANIFESTS:
        found = components[manifest.name]
        assert found["type"] == "machine-learning-model"
        assert found["licenses"] == [{"expression": manifest.licence}]
        for file in found["components"]:
            [digest] = file["hashes"]
            data = (CHECKPOINTS / manifest.name / file["name"]).read_bytes()
            assert digest == {"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}
        datasets = found["modelCard"]["modelParameters"]["datasets"]
        assert [dataset["name"] for dataset in datasets] == [
            corpus.corpus for corpus in manifest.licences
        ]


def test_a_file_without_a_digest_is_an_error() -> None:
    with pytest.raises(WeightsError, match=r"no digest of card\.md, model\.safetensors"):
        component(asdict(MANIFESTS[0]), {"source.spm": "0" * 64, "vocabulary.json": "0" * 64})

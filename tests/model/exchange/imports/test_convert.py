import json
import os
import shutil
import weakref
import zipfile
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.weights import load_checkpoint
from model.config import LengthLimits
from model.errors import CheckpointError, ForeignModelError
from model.exchange.imports import convert as conversion
from model.exchange.imports.convert import StoredType, convert
from model.exchange.imports.imported import ForeignTensor, ImportedModel, ImportOptions
from model.text.languages.tags import LanguagePair
from support.made_imports import MadeImporter, without_tensor, write_made_model
from support.tiny_checkpoint import tiny_transformer, write_tiny_checkpoint

WEIGHTS = "model.safetensors"


class StoppedError(BaseException):
    """What stands for Ctrl-C, or for a kill."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_made_model(tmp_path / "foreign")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def refused(source: Path, destination: Path, importer: MadeImporter) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        convert(source, destination, importers=[importer])
    assert caught.value.path == source
    assert not destination.exists()
    return caught.value.problems


@pytest.mark.parametrize("is_quantised", [True, False])
def test_int8_weights_are_those_that_a_checkpoint_of_the_network_has(
    source: Path, tmp_path: Path, is_quantised: bool
) -> None:
    convert(source, tmp_path / "out", importers=[MadeImporter(is_quantised=is_quantised)])
    expected = write_tiny_checkpoint(tmp_path / "expected", quantise=True)
    assert (tmp_path / "out" / WEIGHTS).read_bytes() == (expected / WEIGHTS).read_bytes()
    assert names(tmp_path / "out") == names(expected)
    assert names(tmp_path) == {"foreign", "out", "expected"}


@pytest.mark.parametrize("compute", ["float32", "float16", "bfloat16"])
def test_floats_are_stored_in_the_type_asked_for(
    source: Path, tmp_path: Path, compute: StoredType
) -> None:
    convert(source, tmp_path / "out", importers=[MadeImporter()], compute=compute)
    loaded = load_checkpoint(tmp_path / "out")
    dtype = getattr(torch, compute)
    for name, value in tiny_transformer().state_dict().items():
        kept = value if value.dim() < 2 else value.to(dtype).float()
        assert torch.equal(loaded.transformer.state_dict()[name], kept)
    assert loaded.manifest.tensors["output_bias"].dtype == "float32"
    assert loaded.manifest.tensors["source_embedding.weight"].dtype == compute


def test_one_tensor_is_in_memory_at_a_time(source: Path, tmp_path: Path) -> None:
    alive: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()
    most = 0

    def copied(tensor: ForeignTensor) -> ForeignTensor:
        def read() -> torch.Tensor:
            nonlocal most
            value = tensor.read()
            assert isinstance(value, torch.Tensor)
            value = value.clone()
            alive.add(value)
            most = max(most, len(alive))
            return value

        return replace(tensor, read=read)

    def copy_each(imported: ImportedModel) -> ImportedModel:
        tensors = {name: copied(tensor) for name, tensor in imported.tensors.items()}
        return replace(imported, tensors=tensors)

    convert(source, tmp_path / "out", importers=[MadeImporter(change=copy_each)])
    assert most == 1


def test_a_network_beyond_all_sizes_is_not_built(source: Path, tmp_path: Path) -> None:
    def huge(imported: ImportedModel) -> ImportedModel:
        network = replace(imported.network, num_decoder_layers=10**9)
        return replace(imported, network=network)

    assert refused(source, tmp_path / "out", MadeImporter(change=huge)) == (
        "network.num_decoder_layers is 1000000000; at most 1024 is read",
    )


def test_the_card_says_what_was_converted(source: Path, tmp_path: Path) -> None:
    words = "dragoman convert foreign out"
    convert(source, tmp_path / "out", importers=[MadeImporter()], command=words)
    card = (tmp_path / "out" / "card.md").read_text()
    for part in (
        "# made",
        "A made model.",
        "under MIT",
        "From en to zh-Hans",
        "It is made.",
        words,
    ):
        assert part in card


def test_a_licence_that_nobody_knows_is_named_so(source: Path, tmp_path: Path) -> None:
    silent = MadeImporter(change=lambda imported: replace(imported, licence=None))
    convert(source, tmp_path / "out", importers=[silent])
    assert read_manifest(tmp_path / "out").licence == "LicenseRef-unknown"
    assert "do not say under which licence" in (tmp_path / "out" / "card.md").read_text()
    convert(source, tmp_path / "said", importers=[silent], licence="CC-BY-4.0", name="other")
    manifest = read_manifest(tmp_path / "said")
    assert (manifest.licence, manifest.name) == ("CC-BY-4.0", "other")


def test_options_reach_the_importer(source: Path, tmp_path: Path) -> None:
    importer, options = MadeImporter(), ImportOptions(pairs=(("de", "en"),))
    convert(source, tmp_path / "out", importers=[importer], options=options)
    assert importer.options == options


def test_a_direction_that_was_exported_may_be_named_by_another_tag(
    source: Path, tmp_path: Path
) -> None:
    exported = {"format": 1, "pairs": [{"source": "en", "target": "zh"}]}
    (source / "dragoman.json").write_text(json.dumps(exported))
    importer, options = MadeImporter(), ImportOptions(pairs=(("en", "zh-Hans"),))
    convert(source, tmp_path / "out", importers=[importer], options=options)
    assert importer.options is not None
    assert importer.options.pairs == (("en", "zh"),)
    assert importer.options.carried == (LanguagePair(source="en", target="zh"),)


def test_all_problems_are_told_together(source: Path, tmp_path: Path) -> None:
    def spoil(imported: ImportedModel) -> ImportedModel:
        tensors = dict(without_tensor("output_bias")(imported).tensors)
        tensors["source_embedding.weight"] = ForeignTensor(
            shape=(3, 32), read=lambda: torch.ones(1)
        )
        tensors["more"] = tensors["source_embedding.weight"]
        limits = LengthLimits(max_source_length=1, max_target_length=64)
        return replace(imported, tensors=tensors, unused=("lm_head.extra",), limits=limits)

    too_short = (
        "limits.max_source_length is 1; it must be at least 2 (the longest prefix, one piece and"
        " EOS)"
    )
    assert refused(source, tmp_path / "out", MadeImporter(change=spoil)) == (
        "output_bias is missing",
        "more is no tensor of the network",
        "source_embedding.weight has shape [3, 32], expected [600, 32]",
        "lm_head.extra is in the source and nothing reads it",
        too_short,
    )
    assert names(tmp_path) == {"foreign"}


def test_a_tokenizer_that_does_not_fit_is_told(source: Path, tmp_path: Path) -> None:
    def other(imported: ImportedModel) -> ImportedModel:
        table = {"▁a": 599}
        return replace(imported, tokenizer=replace(imported.tokenizer, source_table=table))

    (problem,) = refused(source, tmp_path / "out", MadeImporter(change=other))
    assert "target vocabulary lacks" in problem


def test_weights_that_are_not_finite_leave_nothing(source: Path, tmp_path: Path) -> None:
    def spoil(imported: ImportedModel) -> ImportedModel:
        bad = ForeignTensor(shape=(600,), read=lambda: torch.full((600,), torch.nan))
        return replace(imported, tensors={**imported.tensors, "output_bias": bad})

    (problem,) = refused(source, tmp_path / "out", MadeImporter(change=spoil))
    assert problem == "output_bias has values that are not finite; it cannot be saved"
    assert names(tmp_path) == {"foreign"}


def test_a_source_of_no_known_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty", tmp_path / "out", MadeImporter()) == (
        "is of no format that is known (the made format)",
    )
    assert refused(tmp_path / "nothing", tmp_path / "out", MadeImporter()) == ("is missing",)


def test_nothing_is_replaced(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(CheckpointError, match="a conversion replaces nothing"):
        convert(source, tmp_path / "out", importers=[MadeImporter()])


@pytest.mark.parametrize("is_late", [True, False])
def test_what_appears_during_a_conversion_stays(
    source: Path, tmp_path: Path, is_late: bool
) -> None:
    def appear() -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "letter.txt").write_text("dear", encoding="utf-8")

    def before_read(name: str) -> None:
        if is_late and name == "output_bias":
            appear()

    def change(imported: ImportedModel) -> ImportedModel:
        if not is_late:
            appear()
        return imported

    importer = MadeImporter(before_read=before_read, change=change)
    with pytest.raises(CheckpointError, match="exists; a conversion replaces nothing"):
        convert(source, tmp_path / "out", importers=[importer])
    assert (tmp_path / "out" / "letter.txt").read_text(encoding="utf-8") == "dear"
    assert names(tmp_path) == {"foreign", "out"}
    assert bool(importer.num_reads) is is_late


def test_names_need_not_be_utf8_nor_one_line(tmp_path: Path) -> None:
    source = write_made_model(tmp_path / "foreign")
    (source / os.fsdecode(b"f\xe9le")).write_bytes(b"")
    told = os.fsdecode(b"mod\xe9le\nof mine")
    importer = MadeImporter(change=lambda imported: replace(imported, description=told))
    manifest = convert(source, tmp_path / "out", importers=[importer])
    assert manifest.description.isprintable()
    assert read_manifest(tmp_path / "out").description == manifest.description


def test_an_archive_is_converted_and_named_in_errors(source: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "foreign"))
    convert(archive, tmp_path / "out", importers=[MadeImporter()])
    assert load_checkpoint(tmp_path / "out").manifest.name == "made"
    with zipfile.ZipFile(archive, "w") as emptied:
        emptied.write(source / "made.json", "foreign/made.json")
    assert refused(archive, tmp_path / "again", MadeImporter()) == ("weights are missing",)


def stopping_at(name: str) -> Callable[[str], None]:
    def stop(reading: str) -> None:
        if reading == name:
            raise StoppedError

    return stop


def stopped(source: Path, destination: Path, *, at: str) -> None:
    importer = MadeImporter(before_read=stopping_at(at))
    with pytest.raises(StoppedError):
        convert(source, destination, importers=[importer])
    assert not destination.exists()


@pytest.fixture
def _flush_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_FLUSH_BYTES", 1)


@pytest.mark.usefixtures("_flush_always")
def test_a_conversion_that_was_stopped_goes_on(source: Path, tmp_path: Path) -> None:
    stopped(source, tmp_path / "out", at="decoder.layers.0.feed_forward.up_proj.weight")
    importer, told = MadeImporter(), []
    convert(
        source, tmp_path / "out", importers=[importer], progress=lambda *parts: told.append(parts)
    )
    every = list(tiny_transformer().state_dict())
    cut = every.index("decoder.layers.0.feed_forward.up_proj.weight")
    assert list(importer.num_reads) == every[cut:]
    assert told[-1][0] == told[-1][1] == sum(p.numel() for p in tiny_transformer().parameters())
    expected = write_tiny_checkpoint(tmp_path / "expected", quantise=True)
    assert (tmp_path / "out" / WEIGHTS).read_bytes() == (expected / WEIGHTS).read_bytes()
    assert names(tmp_path) == {"foreign", "out", "expected"}


@pytest.mark.usefixtures("_flush_always")
@pytest.mark.parametrize("change", ["source", "settings", "cut weights"])
def test_what_has_changed_begins_anew(source: Path, tmp_path: Path, change: str) -> None:
    stopped(source, tmp_path / "out", at="output_bias")
    (unfinished,) = tmp_path.glob(".out.*.converting")
    if change == "source":
        (source / "made.json").write_text(json.dumps({"seed": 77}))
    elif change == "cut weights":
        os.truncate(unfinished / WEIGHTS, 100)
    importer = MadeImporter()
    name = "other" if change == "settings" else None
    convert(source, tmp_path / "out", importers=[importer], name=name)
    assert len(importer.num_reads) == len(tiny_transformer().state_dict())
    assert names(tmp_path) == {"foreign", "out"}
    load_checkpoint(tmp_path / "out")


@pytest.mark.parametrize(("called", "other"), [("out", "out.fp32"), ("o*", "out"), ("[ab]", "a")])
def test_the_unfinished_conversion_of_another_destination_stays(
    source: Path, tmp_path: Path, called: str, other: str
) -> None:
    stopped(source, tmp_path / other, at="output_bias")
    (unfinished,) = tmp_path.glob(".*.converting")
    convert(source, tmp_path / called, importers=[MadeImporter()])
    assert names(tmp_path) == {"foreign", called, unfinished.name}


def test_two_destinations_with_a_common_beginning_are_converted_at_once(
    source: Path, tmp_path: Path
) -> None:
    def inner(name: str) -> None:
        if name == "output_bias":
            convert(source, tmp_path / "out", importers=[MadeImporter()])

    convert(source, tmp_path / "out.fp32", importers=[MadeImporter(before_read=inner)])
    assert names(tmp_path) == {"foreign", "out", "out.fp32"}


@pytest.mark.usefixtures("_flush_always")
def test_what_a_destination_of_odd_signs_has_begun_goes_on_or_is_removed(
    source: Path, tmp_path: Path
) -> None:
    stopped(source, tmp_path / "[ab]", at="output_bias")
    importer = MadeImporter()
    convert(source, tmp_path / "[ab]", importers=[importer], name="other")
    assert names(tmp_path) == {"foreign", "[ab]"}


def test_two_at_once_are_refused(source: Path, tmp_path: Path) -> None:
    def inner(_name: str) -> None:
        with pytest.raises(CheckpointError, match="is being converted by another process"):
            convert(source, tmp_path / "out", importers=[MadeImporter()])

    convert(source, tmp_path / "out", importers=[MadeImporter(before_read=inner)])
    load_checkpoint(tmp_path / "out")


def test_a_disk_without_room_is_found_before_anything_is_read(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(2**30, 2**30 - 5, 5))
    importer = MadeImporter()
    with pytest.raises(CheckpointError, match=r"needs .* of disk; 0\.0 MiB are free"):
        convert(source, tmp_path / "out", importers=[importer])
    assert importer.num_reads == {}
    assert names(tmp_path) == {"foreign"}


def test_a_disk_that_refuses_leaves_what_can_go_on(source: Path, tmp_path: Path) -> None:
    def full(name: str) -> None:
        if name == "output_bias":
            raise OSError(5, "Input/output error")

    with pytest.raises(CheckpointError, match=r"cannot be written: .*Input/output error"):
        convert(source, tmp_path / "out", importers=[MadeImporter(before_read=full)])
    convert(source, tmp_path / "out", importers=[MadeImporter()])
    assert names(tmp_path) == {"foreign", "out"}


def test_an_error_that_nobody_foresaw_leaves_no_folder(source: Path, tmp_path: Path) -> None:
    def spoil(imported: ImportedModel) -> ImportedModel:
        def read() -> torch.Tensor:
            raise LookupError("aten::odd")

        bad = ForeignTensor(shape=(600,), read=read)
        return replace(imported, tensors={**imported.tensors, "output_bias": bad})

    with pytest.raises(LookupError):
        convert(source, tmp_path / "out", importers=[MadeImporter(change=spoil)])
    assert names(tmp_path) == {"foreign"}

"""OpenNMT-py checkpoints of random networks, against CTranslate2's own converter of them."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.opennmt.importer import OpenNMTImporter
from model.offline.translator import Translator
from model.request import DecodeRequest
from model.text.subwords.pieces import PieceModel
from support.imported_models import imported_checkpoint, imported_state
from support.teacher_forcing import token_log_probs
from support.tiny_checkpoint import tiny_spm

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from support.ctranslate2_models import real_looking_sentences  # noqa: E402  # same
from support.opennmt_checkpoints import (  # noqa: E402  # stands on those
    WIDTH,
    Parts,
    converted_checkpoint,
    old_libraries,
    random_parts,
    saved,
    with_old_vocabulary,
)

PAIRS = ImportOptions(pairs=(("en", "de"),))
MAX_LENGTH = 30


def converted(path: Path, directory: Path) -> "ctranslate2.Translator":
    """What CTranslate2's converter makes of a checkpoint, in its engine."""
    converted_checkpoint(path, directory)
    return ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)


@pytest.mark.parametrize(
    "shape", [{}, {"is_shared": False}, {"is_old": True}], ids=["shared", "three tables", "old"]
)
def test_every_piece_has_the_log_probability_of_ctranslate2s_conversion(
    tmp_path: Path, shape: dict[str, bool]
) -> None:
    path = saved(tmp_path / "opennmt", random_parts(**shape))
    checkpoint = imported_checkpoint(OpenNMTImporter().read(path, PAIRS))
    assert checkpoint.manifest.network.norm_epsilon == 1e-6
    engine = converted(path, tmp_path / "engine")
    model, pair = PieceModel(tiny_spm()), checkpoint.manifest.pairs[0]
    sentences = real_looking_sentences(12)
    references = sentences[::-1]
    found = engine.score_batch(
        list(map(model.pieces, sentences)), list(map(model.pieces, references))
    )
    for sentence, reference, theirs in zip(sentences, references, found, strict=True):
        ours = token_log_probs(
            checkpoint.transformer,
            checkpoint.tokenizer.encode(sentence, pair),
            checkpoint.tokenizer.target_prefix(pair),
            checkpoint.tokenizer.encode_target(reference),
        )
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)


def test_translations_are_those_of_ctranslate2s_conversion(tmp_path: Path) -> None:
    parts = random_parts()
    parts["generator"]["bias"][parts["vocab"]["tgt"].index("</s>")] += 6  # so that they end
    path = saved(tmp_path / "opennmt", parts)
    checkpoint = imported_checkpoint(OpenNMTImporter().read(path, PAIRS))
    # The engine takes suppressed pieces out before the softmax, and we after it: here nobody does.
    manifest = checkpoint.manifest
    tokens = replace(manifest.tokens, suppressed_ids=())
    checkpoint = replace(checkpoint, manifest=replace(manifest, tokens=tokens))
    sentences, pair = real_looking_sentences(100), manifest.pairs[0]
    search = SearchConfig(beam_size=4, stopping="first", max_length=MAX_LENGTH + 1)
    requests = [
        DecodeRequest(
            source_ids=tuple(checkpoint.tokenizer.encode(sentence, pair)),
            prefix_ids=tuple(checkpoint.tokenizer.target_prefix(pair)),
            search=search,
        )
        for sentence in sentences
    ]
    ours = [hypotheses[0] for hypotheses in Translator(checkpoint).search(requests)]
    theirs = converted(path, tmp_path / "engine").translate_batch(
        list(map(PieceModel(tiny_spm()).pieces, sentences)),
        beam_size=4,
        length_penalty=1.0,
        return_scores=True,
        max_decoding_length=MAX_LENGTH,
        min_decoding_length=0,
    )
    pieces, num_ended = parts["vocab"]["tgt"], 0
    for mine, other in zip(ours, theirs, strict=True):
        if mine.is_truncated or len(other.hypotheses[0]) >= MAX_LENGTH:
            continue
        num_ended += 1
        assert [pieces[index] for index in mine.token_ids] == other.hypotheses[0]
        assert mine.score == pytest.approx(other.scores[0], abs=1e-4)
    assert num_ended > 50
    assert len({mine.token_ids for mine in ours}) > 20


def same_model(one: ImportedModel, other: ImportedModel) -> bool:
    """Whether two imports say the same: settings, tables and every weight."""
    assert one.tokenizer.tables() == other.tokenizer.tables()
    ours, theirs = imported_state(one), imported_state(other)
    assert ours.keys() == theirs.keys()
    is_equal = all(torch.equal(value, theirs[name]) for name, value in ours.items())
    return is_equal and (one.network, one.tokens) == (other.network, other.tokens)


@pytest.mark.parametrize("is_archive", [True, False], ids=["archive", "before PyTorch 1.6"])
@pytest.mark.parametrize("version", [0, 1])
def test_older_forms_are_read_without_their_libraries(
    tmp_path: Path, version: int, is_archive: bool
) -> None:
    parts = random_parts(is_old=True)
    newest = OpenNMTImporter().read(saved(tmp_path / "new", parts), PAIRS)
    with old_libraries() as made:
        old = with_old_vocabulary(parts, made, version=version)
        path = saved(tmp_path / "old", old, is_archive=is_archive)
        converted(path, tmp_path / "engine")
    assert OpenNMTImporter().recognises(path)
    assert same_model(OpenNMTImporter().read(path, PAIRS), newest)
    vocabulary = json.loads((tmp_path / "engine" / "shared_vocabulary.json").read_text())
    assert vocabulary == parts["vocab"]["src"]


class Command:
    """What a pickle can ask for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("is_archive", [True, False])
def test_code_beside_an_old_vocabulary_is_not_run(tmp_path: Path, is_archive: bool) -> None:
    with old_libraries() as made:
        parts = with_old_vocabulary(random_parts(), made, version=1)
        parts["vocab"]["src"].stop_words = Command(tmp_path / "run")
        path = saved(tmp_path / "opennmt", parts, is_archive=is_archive)
    (problem,) = problems_of(path).split("; it asks for ")[:1]
    assert problem.endswith("wants to run code, and is not read")
    assert not (tmp_path / "run").exists()


def test_several_fields_a_token_are_refused(tmp_path: Path) -> None:
    with old_libraries() as made:
        parts = with_old_vocabulary(random_parts(), made, version=1)
        parts["vocab"]["src"].fields *= 2
        path = saved(tmp_path / "opennmt", parts)
    assert "the src vocabulary has 2 fields a token; only one is supported" in problems_of(path)


def test_a_folder_with_a_checkpoint_is_converted(tmp_path: Path) -> None:
    path = saved(tmp_path / "opennmt", random_parts(is_gated=True))
    manifest = convert(path.parent, tmp_path / "ours", importers=IMPORTERS, options=PAIRS)
    assert manifest.name == "model_step_100"
    assert manifest.network.gated_feed_forward
    assert manifest.network.activation == "silu"
    assert (manifest.network.share_embeddings, manifest.network.tie_output) == (True, True)
    assert not manifest.tokens.has_source_eos
    load_checkpoint(tmp_path / "ours")


@pytest.mark.parametrize("has_bias", [False, True])
def test_padding_that_is_added_has_no_probability(tmp_path: Path, has_bias: bool) -> None:
    parts = random_parts()
    pieces = [piece.replace("<blank>", "<unused>") for piece in parts["vocab"]["src"]]
    parts["vocab"] |= {"src": pieces, "tgt": pieces}
    stored = parts["generator"]["bias"] if has_bias else torch.zeros(len(pieces))
    if not has_bias:
        del parts["generator"]["bias"]
    imported = OpenNMTImporter().read(saved(tmp_path / "opennmt", parts), PAIRS)
    assert imported.network.output_bias
    assert imported.tokens.pad_id == len(pieces)
    bias = imported.tensors["output_bias"].read()
    assert isinstance(bias, Tensor)
    assert imported.tensors["output_bias"].shape == bias.shape == (len(pieces) + 1,)
    assert torch.equal(bias[:-1], stored)
    assert bias[-1] == -1e4


def problems_of(path: Path, options: ImportOptions = PAIRS) -> str:
    with pytest.raises(ForeignModelError) as caught:
        OpenNMTImporter().read(path, options)
    return "; ".join(caught.value.problems)


def test_every_option_that_is_not_supported_is_told_at_once(tmp_path: Path) -> None:
    parts = random_parts()
    for name, value in {
        "encoder_type": "brnn",
        "max_relative_positions": 20,
        "position_encoding": False,
        "self_attn_type": "average",
        "layer_norm": "rms",
        "copy_attn": True,
        "multiquery": True,
        "pos_ffn_activation_fn": "tanh",
        "heads": "many",
        "norm_eps": 3,
    }.items():
        setattr(parts["opt"], name, value)
    found = problems_of(saved(tmp_path, parts), ImportOptions())
    for problem in (
        "encoder_type is 'brnn'",
        "max_relative_positions is 20; only 0",
        "position_encoding is False; only True",
        "self_attn_type is 'average'",
        "layer_norm is 'rms'",
        "copy_attn is True",
        "multiquery is True",
        "pos_ffn_activation_fn is 'tanh'; it must be one of relu, gelu, fast_gelu, silu",
        "num_heads is 'many'",
        "norm_eps is 3",
        "do not say which languages",
    ):
        assert problem in found


def drop(part: str, name: str) -> Callable[[Parts], object]:
    return lambda parts: parts[part].pop(name)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (drop("model", "encoder.layer_norm.weight"), "it lacks encoder.layer_norm.weight"),
        (drop("generator", "weight"), "it lacks generator.weight"),
        (drop("vocab", "tgt"), "its vocabulary has no list of pieces as 'tgt'"),
        (lambda parts: parts["vocab"]["src"].append("more"), "has 601 rows for 602 pieces"),
        (lambda parts: parts["model"].update(step=3), "'step' is no tensor"),
        (lambda parts: parts.update(opt={}), "its options (opt) are no argparse.Namespace"),
        (lambda parts: parts.update(vocab=Path("x")), "wants to run code"),
        (
            lambda parts: parts["model"].update(
                {"encoder.embeddings.make_embedding.pe.pe": torch.randn(300, 1, WIDTH)}
            ),
            "its position tables are none that are computed here",
        ),
    ],
)
def test_what_is_missing_or_odd_is_named(
    tmp_path: Path, change: Callable[[Parts], object], problem: str
) -> None:
    parts = random_parts()
    change(parts)
    assert problem in problems_of(saved(tmp_path, parts))


def test_a_tensor_that_nothing_reads_stops_the_conversion(tmp_path: Path) -> None:
    parts = random_parts()
    parts["model"]["encoder.extra.weight"] = torch.ones(2, 2)
    path = saved(tmp_path / "opennmt", parts)
    with pytest.raises(ForeignModelError, match=r"encoder\.extra\.weight is in the source and"):
        convert(path, tmp_path / "ours", importers=IMPORTERS, options=PAIRS)
    assert not (tmp_path / "ours").exists()


def test_a_tensor_that_nothing_reads_is_told_beside_those_that_are_missing(tmp_path: Path) -> None:
    parts = random_parts()
    norm = parts["model"].pop("encoder.layer_norm.weight")
    parts["model"]["encoder.renamed.weight"] = norm
    found = problems_of(saved(tmp_path, parts), ImportOptions())
    assert "it lacks encoder.layer_norm.weight" in found
    assert "encoder.renamed.weight is in the source and nothing reads it" in found
    assert "its files do not say which languages it translates; name the directions" in found


def test_tensors_are_told_beside_a_vocabulary_without_a_special_token(tmp_path: Path) -> None:
    parts = random_parts()
    norm = parts["model"].pop("encoder.layer_norm.weight")
    parts["model"]["encoder.renamed.weight"] = norm
    for side in ("src", "tgt"):
        pieces = parts["vocab"][side]
        parts["vocab"][side] = ["other" if piece == "<unk>" else piece for piece in pieces]
    found = problems_of(saved(tmp_path, parts))
    assert "lacks the special token '<unk>'" in found
    assert "it lacks encoder.layer_norm.weight" in found
    assert "encoder.renamed.weight is in the source and nothing reads it" in found
    assert "rows" not in found


def test_a_checkpoint_is_recognised_by_its_content(tmp_path: Path) -> None:
    importer = OpenNMTImporter()
    path = saved(tmp_path / "opennmt", random_parts())
    assert importer.recognises(path)
    assert importer.recognises(path.parent)
    assert not importer.recognises(tmp_path)
    assert not importer.recognises(tmp_path / "missing.pt")
    (tmp_path / "text.pt").write_bytes(b"model generator vocab opt")
    assert not importer.recognises(tmp_path / "text.pt")
    torch.save({"model": torch.ones(2)}, tmp_path / "other.pt")
    assert not importer.recognises(tmp_path / "other.pt")


def test_a_truncated_checkpoint_is_one_clear_error(tmp_path: Path) -> None:
    path = saved(tmp_path, random_parts())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert "is no checkpoint of OpenNMT-py" in problems_of(path)


def test_a_damaged_pickle_of_any_compression_is_no_checkpoint(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED):
        path = tmp_path / "model.pt"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("model/data.pkl", bytes(range(256)) * 99)
        data = bytearray(path.read_bytes())
        data[54:150] = b"\xff" * 96
        path.write_bytes(data)
        assert not OpenNMTImporter().recognises(path)


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: torch.eye(3).to_sparse(),
            "is stored as torch.sparse_coo; only plain arrays are read",
        ),
        (
            lambda: torch.eye(3).to_sparse_csr(),
            "is stored as torch.sparse_csr; only plain arrays are",
        ),
        (lambda: torch.empty(3, 3, device="meta"), "is of the device meta: its values are not in"),
        (lambda: torch.tensor(3.0), "is a single number; a weight has one dimension or more"),
    ],
)
def test_tensors_that_are_no_plain_arrays_are_named(
    tmp_path: Path, make: Callable[[], Tensor], problem: str
) -> None:
    names = ("encoder.layer_norm.weight", "encoder.embeddings.make_embedding.pe.pe")
    parts = random_parts()
    parts["model"] |= dict.fromkeys(names, make())
    parts["generator"]["weight"] = make()
    found = problems_of(saved(tmp_path, parts))
    for name in (*names, "generator.weight"):
        assert f"'{name}' {problem}" in found


@pytest.mark.parametrize("shape", [(300, 1, 0), (0, 1, WIDTH)])
def test_a_table_of_positions_without_values_is_none(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    parts = random_parts()
    parts["model"]["encoder.embeddings.make_embedding.pe.pe"] = torch.zeros(shape)
    assert "its position tables are none that" in problems_of(saved(tmp_path, parts))


def test_options_of_other_types_are_told(tmp_path: Path) -> None:
    parts = random_parts()
    names = ("max_relative_positions", "layer_norm", "decoder_start_token", "heads")
    for name in names:
        setattr(parts["opt"], name, torch.zeros(2))
    parts["opt"].pos_ffn_activation_fn = ["relu"]
    parts["opt"].num_kv = 8
    found = problems_of(saved(tmp_path, parts))
    for name in names[:-1]:
        assert f"{name} is tensor([0., 0.])" in found
    assert "num_heads is tensor([0., 0.])" in found
    assert "num_kv is 8; only 0 is supported" in found
    assert "pos_ffn_activation_fn is ['relu']; it must be one of" in found

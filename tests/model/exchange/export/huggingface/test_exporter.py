"""Every family from transformers to a checkpoint and back: the folder that was written first is
the oracle of the one that is exported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from sentencepiece import SentencePieceProcessor
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import SearchConfig
from model.decode.session import DecodeRequest
from model.exchange.export.huggingface.exporter import export_huggingface
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.offline.translator import Translator
from model.text.languages.tags import LanguagePair
from support.foreign_folders import MADLAD_SYMBOLS, trained_spm, write_fsmt, write_mbart, write_t5
from support.huggingface_folders import ODD_LINES, SENTENCES, m2m100_folder, marian_folder
from support.learned_merges import real_lines
from support.made_imports import all_reads

MAX_LENGTH = 8
EN_DE = (("en", "de"),)
MADLAD = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
T5 = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}


def opus(**settings: object) -> Callable[[Path], object]:
    return lambda folder: marian_folder(
        folder, **{"languages": ("en", "de"), "max_position_embeddings": 512, **settings}
    )


def m2m100(kind: str, **settings: object) -> Callable[[Path], object]:
    return lambda folder: m2m100_folder(folder, kind=kind, max_position_embeddings=512, **settings)


def mbart(folder: Path) -> None:
    write_mbart(folder, activation_function="relu")


def madlad(folder: Path) -> None:
    spm = trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    write_t5(folder, spm=spm, **MADLAD)


def first_t5(folder: Path) -> None:
    spm = trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_t5(folder, spm=spm, head="tied", **T5, feed_forward_proj="relu")


FAMILIES: dict[str, Callable[[Path], object]] = {
    "opus": opus(),
    "tagged opus": opus(languages=("en", "mul"), tags=(">>deu<<", ">>pt_br<<")),
    "separate opus": opus(is_separate=True),
    "m2m100": m2m100("m2m100"),
    "untied m2m100": m2m100("m2m100", tie_word_embeddings=False),
    "wmt21": m2m100("wmt21"),
    "nllb": m2m100("nllb"),
    "mbart": mbart,
    "madlad": madlad,
    "first t5": first_t5,
    "fsmt": lambda folder: write_fsmt(folder, is_joint=False),
    "joint fsmt": lambda folder: write_fsmt(folder, is_joint=True),
}


@dataclass(frozen=True)
class RoundTrip:
    """The checkpoint of a folder of transformers, the folder made of that, and both's networks."""

    name: str
    checkpoint: Checkpoint
    last: Path
    tokenizer: PreTrainedTokenizerBase
    networks: tuple[PreTrainedModel, PreTrainedModel]

    @property
    def pair(self) -> LanguagePair:
        pair = self.checkpoint.manifest.pair(*EN_DE[0])
        assert pair is not None
        return pair

    def asked(self, line: str) -> str:
        """What a person types for a line: the tag of the target, where the source has it."""
        if self.name in {"tagged opus", "madlad"}:
            return f"{self.pair.source_prefix[0]} {line}"
        return f"translate English to German: {line}" if self.name == "first t5" else line


@pytest.fixture(scope="module", params=FAMILIES)
def trip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    base = tmp_path_factory.mktemp("trip")
    first = base / "opus-mt-en-de"
    FAMILIES[request.param](first)
    convert(
        first,
        base / "checkpoint",
        importers=IMPORTERS,
        compute="float32",
        options=ImportOptions(pairs=EN_DE),
    )
    checkpoint = load_checkpoint(base / "checkpoint")
    export_huggingface(checkpoint, base / "last")
    first_network, last_network = (
        AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
        for folder in (first, base / "last")
    )
    return RoundTrip(
        name=request.param,
        checkpoint=checkpoint,
        last=base / "last",
        tokenizer=AutoTokenizer.from_pretrained(base / "last"),
        networks=(first_network, last_network),
    )


def test_every_weight_of_transformers_is_what_it_was(trip: RoundTrip) -> None:
    first, last = (network.state_dict() for network in trip.networks)
    assert first.keys() == last.keys()
    for name, value in first.items():
        is_computed = "embed_positions" in name and trip.name != "mbart"
        is_unread = trip.name == "untied m2m100" and name == "model.shared.weight"
        if is_computed or is_unread:
            continue
        assert torch.equal(value, last[name]), name


@torch.inference_mode()
def test_logits_are_those_of_the_first_folder(trip: RoundTrip) -> None:
    generator = torch.Generator().manual_seed(1)
    network = trip.checkpoint.manifest.network
    size = min(network.vocab_size, network.output_size)
    ids = torch.randint(4, size, (2, 9), generator=generator)
    first, last = (
        network(input_ids=ids, decoder_input_ids=ids.flip(1), use_cache=False).logits
        for network in trip.networks
    )
    torch.testing.assert_close(first, last, atol=1e-5, rtol=0)  # sinusoids are computed anew


def imported(folder: Path) -> ImportedModel:
    importer = next(each for each in IMPORTERS if each.recognises(folder))
    return importer.read(folder, ImportOptions(pairs=EN_DE))


def test_what_is_imported_again_is_the_checkpoint(trip: RoundTrip) -> None:
    again, manifest = imported(trip.last), trip.checkpoint.manifest
    assert again.unused == ()
    assert (again.network, again.tokens, again.pairs, again.limits) == (
        manifest.network,
        manifest.tokens,
        manifest.pairs,
        manifest.limits,
    )
    assert (again.name, again.tokenizer.moses) == (trip.last.name, manifest.moses)
    state = trip.checkpoint.transformer.state_dict()
    read = all_reads(again)
    assert read.keys() == state.keys()
    assert all(torch.equal(value, read[name]) for name, value in state.items())
    tokenizer = again.tokenizer.build(manifest)
    assert tokenizer.source_pieces() == trip.checkpoint.tokenizer.source_pieces()
    assert tokenizer.target_pieces() == trip.checkpoint.tokenizer.target_pieces()


def test_ids_of_text_are_those_of_auto_tokenizer_and_text_comes_back(trip: RoundTrip) -> None:
    ours, theirs = trip.checkpoint.tokenizer, trip.tokenizer
    score = scores(trip)
    for line in lines_for(trip):
        expected = ours.encode(line, trip.pair)
        ids = theirs(trip.asked(line)).input_ids
        if ids != expected:  # two ways to cut a word may be equally likely
            assert score is not None, line
            assert score(ids) == pytest.approx(score(expected), abs=1e-3), line
        written = ours.encode_target(line)
        if "fsmt" in trip.name:  # its tokenizer leaves out what stands for no text by itself
            assert ours.decode(written) == theirs.decode(written, skip_special_tokens=True)


def lines_for(trip: RoundTrip) -> Sequence[str]:
    """Lines that both cut alike: tags that a text has by itself are tags to transformers alone."""
    odd = [] if trip.name in {"mbart", "nllb"} else map(str.rstrip, ODD_LINES)
    return [line for line in [*real_lines()[:100], *SENTENCES, *odd] if "<" not in line]


def scores(trip: RoundTrip) -> Callable[[Sequence[int]], float] | None:
    """The log-probability of ids, where text is cut by that alone."""
    file, offset = {"mbart": ("sentencepiece.bpe.model", 1)}.get(trip.name, ("spiece.model", 0))
    if not (trip.last / file).exists() or "m2m" in trip.name:
        return None
    spm = SentencePieceProcessor(model_file=str(trip.last / file))
    known = range(spm.get_piece_size())
    return lambda ids: sum(spm.get_score(i - offset) for i in ids if i - offset in known)


@torch.inference_mode()
def test_the_folder_alone_translates_as_we_do(trip: RoundTrip) -> None:
    ours, num_forced = trip.checkpoint.tokenizer, len(trip.pair.target_prefix)
    lines = [line for line in SENTENCES[:10] if "<" not in line]
    search = SearchConfig(beam_size=1, max_length=MAX_LENGTH)
    requests = [
        DecodeRequest(
            source_ids=tuple(ours.encode(line, trip.pair)),
            prefix_ids=tuple(ours.target_prefix(trip.pair)),
            search=search,
        )
        for line in lines
    ]
    found = Translator(trip.checkpoint).search(requests)
    assert any(best.token_ids for (best,) in found)
    specials = set(trip.tokenizer.all_special_ids)
    for line, (best,) in zip(lines, found, strict=True):
        output = trip.networks[1].generate(
            trip.tokenizer(trip.asked(line), return_tensors="pt").input_ids,
            num_beams=1,
            max_new_tokens=MAX_LENGTH + num_forced,
            use_cache="fsmt" in trip.name,  # sees what comes next without; T5's needs equal depths
        )
        ids = output[0].tolist()
        assert ids[:-1] == [*requests[0].prefix_ids, *best.token_ids]
        if specials.isdisjoint(best.token_ids):  # tags are text to us, of directions that are none
            text = trip.tokenizer.decode(ids, skip_special_tokens=True)
            assert text.strip() == ours.decode(best.token_ids).strip()

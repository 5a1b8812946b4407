"""OPUS-MT releases: ids of vocab.yml, target tokens, README.md, cleaning of text."""

import io
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sacremoses import MosesPunctNormalizer, MosesTokenizer
from subword_nmt.apply_bpe import BPE

from model.checkpoint.weights import load_checkpoint
from model.config import SearchConfig
from model.errors import ForeignModelError
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.exchange.imports.marian.opus_mt import OPUS_MT
from model.offline.translator import Translator
from model.text.subwords.pieces import PieceModel
from support.learned_merges import learned_merges, merges_file, real_lines
from support.marian_oracle import FIXTURES, expected, network_of, tokenizer_of, word_scores

MODEL = "opus.spm32k-spm32k.transformer-align.model1.npz.best-perplexity.npz"
README = """# opus-2019-01-01.zip

* source language(s): nld
* target language(s): ita

# opus-2021-02-22.zip

* dataset: opus
* model: transformer-align
* source language(s): eng
* target language(s): deu fra
* pre-processing: normalization + SentencePiece (spm32k,spm32k)
* a sentence initial language token is required in the form of `>>id<<` (id = valid target ID)
* valid language labels: >>deu<< >>fra<< >>swe<<
* download: [opus-2021-02-22.zip](https://example.org/Tatoeba-MT-models/eng-mul/opus-2021-02-22.zip)

## Benchmarks

| testset | BLEU  | chr-F |
|---------|-------|-------|
| newstest2019.eng-deu \t| 40.9 \t| 0.654 |
| Tatoeba-test.eng-fra \t| 50.1 \t| 0.664 |
"""


def release(folder: Path, *, readme: str = README) -> Path:
    shutil.copytree(FIXTURES / "opus", folder)
    (folder / "README.md").write_text(readme, encoding="utf-8")
    (folder / "LICENSE").write_text("Attribution 4.0 International\n\n…", encoding="utf-8")
    (folder / "decoder.yml").write_text(
        f"models:\n  - {MODEL}\nvocabs:\n  - opus.spm32k-spm32k.vocab.yml\n"
        "  - opus.spm32k-spm32k.vocab.yml\nbeam-size: 6\nnormalize: 1\n",
        encoding="utf-8",
    )
    return folder


def test_the_log_probability_of_every_word_is_marians(tmp_path: Path) -> None:
    model = OPUS_MT.read(release(tmp_path / "opus"), ImportOptions())
    transformer, tokenizer = network_of(model), tokenizer_of(model)
    by_tag = {pair.source_prefix[0]: pair for pair in model.pairs}
    table = model.tokenizer.tables()[1]
    words = 0
    for line, hypotheses in expected("opus"):
        tag, _, pieces = line.partition(" ")
        text = pieces.replace(" ", "").replace("▁", " ").strip()
        source = tokenizer.encode(text, by_tag[tag])
        assert source[0] == table[tag]
        for hypothesis in hypotheses:
            target = [table[piece] for piece in hypothesis.pieces]
            if len(hypothesis.word_scores) > len(target):
                target.append(model.tokens.eos_id)
            found = word_scores(transformer, model.tokens.start_id, source, target)
            assert found == pytest.approx(hypothesis.word_scores, abs=1e-4)
            words += len(target)
    assert words > 300


def test_ids_are_those_of_the_vocabulary_and_not_of_sentencepiece(tmp_path: Path) -> None:
    folder = release(tmp_path / "opus")
    model = OPUS_MT.read(folder, ImportOptions())
    pieces = PieceModel((folder / "source.spm").read_bytes())
    table = model.tokenizer.tables()[0]
    text = "The cat sees the river."
    ids = tokenizer_of(model).encode(text, model.pairs[0])
    assert ids[1:-1] == [table[piece] for piece in pieces.pieces(text)]
    assert ids[1:-1] != pieces.own_ids(text)


def test_a_typed_target_token_is_text(tmp_path: Path) -> None:
    model = OPUS_MT.read(release(tmp_path / "opus"), ImportOptions())
    tokenizer = tokenizer_of(model)
    german, french = (model.tokenizer.tables()[0][tag] for tag in (">>deu<<", ">>fra<<"))
    ids = tokenizer.encode(">>fra<< The cat", model.pairs[0])
    assert ids[0] == german
    assert french not in ids


def test_readme_and_licence_go_into_the_card(tmp_path: Path) -> None:
    manifest = convert(release(tmp_path / "opus"), tmp_path / "out", importers=IMPORTERS)
    assert (manifest.name, manifest.licence) == ("opus-2021-02-22", "CC-BY-4.0")
    assert [(pair.source, pair.target) for pair in manifest.pairs] == [("en", "de"), ("en", "fr")]
    assert manifest.normalisation == "opus-mt"
    card = (tmp_path / "out" / manifest.files.card).read_text(encoding="utf-8")
    assert "newstest2019.eng-deu 40.9, Tatoeba-test.eng-fra 50.1" in card
    assert "beam-size 6, normalize 1" in card


@torch.inference_mode()
def test_a_checkpoint_cleans_text_as_the_release_does(tmp_path: Path) -> None:
    convert(release(tmp_path / "opus"), tmp_path / "out", importers=IMPORTERS)
    checkpoint = load_checkpoint(tmp_path / "out")
    pair = checkpoint.manifest.pairs[0]
    clean = checkpoint.tokenizer.encode("The cat sees two apples!", pair)
    assert checkpoint.tokenizer.encode("The cat\u200bsees  two\tapples！", pair) == clean


@pytest.mark.parametrize(
    ("readme", "pairs"),
    [
        ("* source language(s): eng\n* target language(s): fra\n", [("en", "fr", ())]),
        (
            "* download: [o](https://example.org/OPUS-MT-models/en-de/opus-2020-02-26.zip)\n",
            [("en", "de", ())],
        ),
        ("* source language(s): en\n* target language(s): jap\n", [("en", "ja", ())]),
        (
            "* source language(s): aze_Latn kaz_Cyrl kaz_Latn\n* target language(s): eng\n",
            [("az", "en", ()), ("kk", "en", ()), ("kk-Latn", "en", ())],
        ),
        (
            "* download: [o](https://example.org/OPUS-MT-models/en-jap/opus-2020-01-08.zip)\n",
            [("en", "ja", ())],
        ),
        (
            "* source language(s): eng nld\n* target language(s): deu fra\n",
            [
                ("en", "de", (">>deu<<",)),
                ("en", "fr", (">>fra<<",)),
                ("nl", "de", (">>deu<<",)),
                ("nl", "fr", (">>fra<<",)),
            ],
        ),
    ],
)
def test_directions(
    tmp_path: Path, readme: str, pairs: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    model = OPUS_MT.read(release(tmp_path / "opus", readme=readme), ImportOptions())
    assert [(pair.source, pair.target, pair.source_prefix) for pair in model.pairs] == pairs


def with_labels(folder: Path, labels: str) -> Path:
    """A release from English whose vocabulary has these labels, and whose README.md lists them."""
    readme = "* source language(s): eng\n* target language(s): zho por\n* valid language labels:"
    release(folder, readme=readme + "".join(f" >>{label}<<" for label in labels.split()) + "\n")
    path = folder / "opus.spm32k-spm32k.vocab.yml"
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, label in enumerate(labels.split(), start=len(lines) - 12):
        lines[number] = f'">>{label}<<": {number}'
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [
        (
            "cmn cmn_Hans cmn_Hant nan yue_Hans yue_Hant zho",
            {
                "zh-Hans": ">>cmn_Hans<<",
                "zh-Hant": ">>cmn_Hant<<",
                "nan": ">>nan<<",
                "yue-Hans": ">>yue_Hans<<",
                "yue": ">>yue_Hant<<",
            },
        ),
        ("cmn zho", {"zh-Hans": ">>zho<<"}),
        ("pob por", {"pt-BR": ">>pob<<", "pt": ">>por<<"}),
    ],
)
def test_of_labels_of_one_language_that_with_a_script_is_its_token(
    tmp_path: Path, labels: str, tokens: dict[str, str]
) -> None:
    model = OPUS_MT.read(with_labels(tmp_path / "opus", labels), ImportOptions())
    assert {pair.target: pair.source_prefix for pair in model.pairs} == {
        tag: (token,) for tag, token in tokens.items()
    }


def test_a_pair_that_a_person_names_has_its_token_or_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "opus")
    model = OPUS_MT.read(folder, ImportOptions(pairs=(("en", "fr"),)))
    assert [pair.source_prefix for pair in model.pairs] == [(">>fra<<",)]
    with pytest.raises(ForeignModelError, match="has no token for the target es; it has de, fr"):
        OPUS_MT.read(folder, ImportOptions(pairs=(("en", "es"),)))


def test_releases_of_2019_have_merges_instead_of_pieces(tmp_path: Path) -> None:
    folder = release(tmp_path / "opus")
    for side in ("source", "target"):
        (folder / f"{side}.spm").unlink()
        (folder / f"{side}.bpe").write_text("#version: 0.2\nt h\nth e</w>\n", encoding="utf-8")
    assert OPUS_MT.recognises(folder)
    model = OPUS_MT.read(folder, ImportOptions())
    assert model.tokenizer.moses is not None
    assert model.tokenizer.moses.marks == "continuation"
    assert tokenizer_of(model).encode("The", model.pairs[0])[-1] == model.tokens.eos_id


def test_a_release_of_2019_is_converted_with_its_codes_and_translates(tmp_path: Path) -> None:
    """Its ids are those of vocab.yml for the pieces that subword-nmt makes of Moses' words."""
    folder = release(tmp_path / "opus")
    lines = real_lines()[:400]
    words = [word for line in lines for word in MosesTokenizer("en").tokenize(line)]
    codes = merges_file(learned_merges(words[:3000], 150), header="#version: 0.2\n")
    theirs = BPE(io.StringIO(codes.decode()))
    counts = Counter(theirs.segment_tokens(words))
    path = folder / "opus.spm32k-spm32k.vocab.yml"
    size = len(path.read_text(encoding="utf-8").splitlines())
    common = [piece for piece, _ in counts.most_common(size - 4)]
    table = ["</s>", "<unk>", ">>deu<<", ">>fra<<", *common]
    numbered = (f"{json.dumps(piece, ensure_ascii=False)}: {i}" for i, piece in enumerate(table))
    path.write_text("\n".join(numbered) + "\n", encoding="utf-8")
    for side in ("source", "target"):
        (folder / f"{side}.spm").unlink()
        (folder / f"{side}.bpe").write_bytes(codes)
    convert(folder, tmp_path / "converted", importers=IMPORTERS, compute="int8")
    checkpoint = load_checkpoint(tmp_path / "converted")
    tokenizer, pair = checkpoint.tokenizer, checkpoint.manifest.pairs[0]
    label, normaliser = (
        pair.source_prefix[0],
        MosesPunctNormalizer("en", pre_replace_unicode_punct=True, post_remove_control_chars=True),
    )
    ids = {piece: index for index, piece in enumerate(table)}
    num_known = 0
    for line in lines:
        moses = MosesTokenizer("en")
        found = moses.tokenize(normaliser.normalize(line), aggressive_dash_splits=True)
        expected = [ids.get(piece, 1) for piece in theirs.segment_tokens(found)]
        assert tokenizer.encode(line, pair) == [ids[label], *expected, 0]
        num_known += sum(each != 1 for each in expected)
    assert num_known > 1000
    search = SearchConfig(beam_size=2, max_length=24)
    texts = [one.text for one in Translator(checkpoint).translate(lines[:3], pair, search)]
    assert any(texts)
    assert not any("@@ " in text for text in texts)


def test_everything_in_the_way_is_told_together(tmp_path: Path) -> None:
    folder = release(tmp_path / "opus")
    with np.load(folder / MODEL) as arrays:
        kept = {name: arrays[name] for name in arrays if name != "encoder_l1_ffn_W1"}
    options = bytes(kept["special:model.yml"]).rstrip(b"\0").decode()
    odd = options.replace("ffn-activation: swish", "ffn-activation: sine")
    odd = odd.replace("ffn-activation: relu", "ffn-activation: sine")
    assert odd != options
    kept["special:model.yml"] = np.frombuffer(odd.encode() + b"\0", np.int8)
    np.savez(folder / MODEL, **kept, encoder_l9_odd=np.zeros(3, np.float32))
    (folder / "source.spm").write_bytes(b"damaged")
    (folder / "opus.spm32k-spm32k.vocab.yml").write_text("</s>: 0\nx\n", encoding="utf-8")
    with pytest.raises(ForeignModelError) as caught:
        OPUS_MT.read(folder, ImportOptions(pairs=(("en", "es"),)))
    told = caught.value.problems
    assert "encoder_l1_ffn_W1 is missing" in told
    assert "encoder_l9_odd is in the source and nothing reads it" in told
    assert any("transformer-ffn-activation is 'sine'" in problem for problem in told)
    assert any(problem.startswith("source.spm ") for problem in told)
    assert any("line 2 is no `token: id`" in problem for problem in told)
    assert len(told) == 5


def test_a_target_without_a_token_is_told_with_the_tensors(tmp_path: Path) -> None:
    folder = release(tmp_path / "opus")
    with np.load(folder / MODEL) as arrays:
        kept = {name: arrays[name] for name in arrays if name != "encoder_l1_ffn_W1"}
    np.savez(folder / MODEL, **kept)
    with pytest.raises(ForeignModelError) as caught:
        OPUS_MT.read(folder, ImportOptions(pairs=(("en", "es"),)))
    assert caught.value.problems == (
        "has no token for the target es; it has de, fr",
        "encoder_l1_ffn_W1 is missing",
    )


def test_a_damaged_vocabulary_is_told(tmp_path: Path) -> None:
    folder = release(tmp_path / "opus", readme="nothing")
    (folder / "opus.spm32k-spm32k.vocab.yml").write_text("</s>: 0\n<unk>: 1\nx\n", encoding="utf-8")
    with pytest.raises(ForeignModelError, match="line 3 is no `token: id`"):
        OPUS_MT.read(folder, ImportOptions())

"""Multilingual CTranslate2 directories: how they are recognised, and what the engine finds."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.errors import ForeignModelError
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.imports.convert import convert
from model.exchange.imports.ctranslate2.importer import CTranslate2Importer
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.language_tokens import FAMILIES, MBART_CODES
from model.text.subwords.pieces import PieceModel
from support.huggingface_folders import MARIAN_TAGS, SENTENCES, marian_folder, write_json
from support.imported_models import imported_checkpoint
from support.teacher_forcing import token_log_probs

ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from support.ctranslate2_models import (  # noqa: E402  # needs CTranslate2
    RandomSpec,
    opennmt_pieces,
    random_directory,
)
from support.ctranslate2_multilingual import (  # noqa: E402  # same
    MULTILINGUAL,
    Multilingual,
    converted_directory,
)

FROM_ENGLISH = ImportOptions(pairs=(("en", "de"),))
NUM_LANGUAGES = {"nllb": 202, "m2m100": 100, "small100": 100, "mbart-50": 52, "madlad": 4}


@dataclass(frozen=True)
class Converted:
    """A family's directory, and what was made of it."""

    name: str
    family: Multilingual
    folder: Path
    directory: Path
    imported: ImportedModel
    checkpoint: Checkpoint


@pytest.fixture(scope="module", params=MULTILINGUAL)
def converted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Converted:
    name, base = request.param, tmp_path_factory.mktemp(request.param)
    directory = converted_directory(name, base / "hub", base / "directory")
    says_family = ImportOptions(family=name if name == "small100" else None)
    options = says_family if name in NUM_LANGUAGES else FROM_ENGLISH
    imported = CTranslate2Importer().read(directory, options)
    return Converted(
        name=name,
        family=MULTILINGUAL[name],
        folder=base / "hub",
        directory=directory,
        imported=imported,
        checkpoint=imported_checkpoint(imported),
    )


def test_every_piece_has_the_engines_log_probability(converted: Converted) -> None:
    pair = converted.checkpoint.manifest.pair("en", "de")
    assert pair is not None
    engine = ctranslate2.Translator(str(converted.directory), compute_type="float32")
    tokenizer, lines = converted.checkpoint.tokenizer, SENTENCES[:6]
    references = SENTENCES[6:12]
    pieces = PieceModel((converted.directory / converted.family.files[1]).read_bytes())
    found = engine.score_batch(
        [converted.family.source_pieces(converted.folder, line) for line in lines],
        [[*converted.family.target, *pieces.pieces(reference)] for reference in references],
    )
    for line, reference, theirs in zip(lines, references, found, strict=True):
        ours = token_log_probs(
            converted.checkpoint.transformer,
            tokenizer.encode(line, pair),
            tokenizer.target_prefix(pair),
            tokenizer.encode_target(reference),
        )
        log_probs = theirs.log_probs[len(converted.family.target) :]
        assert log_probs == pytest.approx(ours, abs=2e-4)


def test_all_languages_of_its_vocabulary_are_there_without_a_flag(converted: Converted) -> None:
    imported = converted.imported
    assert imported.family == ("T5" if converted.name == "t5" else FAMILIES[converted.name].title)
    if converted.name not in NUM_LANGUAGES:
        (pair,) = imported.pairs
        assert pair.source_prefix == ((">>deu<<",) if converted.name == "opus-mt" else ())
        assert bool(pair.source_prompt) == (converted.name == "t5")
        return
    number = NUM_LANGUAGES[converted.name]
    assert len(imported.languages) == number
    assert len(imported.pairs) == number * (number - 1)


def test_what_no_text_has_is_never_written(converted: Converted) -> None:
    tokens, size = converted.imported.tokens, converted.imported.network.output_size
    names = converted.checkpoint.tokenizer.target_pieces()
    silent = {tokens.eos_id, *tokens.suppressed_ids}
    assert {index for index in range(size) if index not in names} <= silent
    assert not any("madeupword" in name or "extra_id" in name for name in names.values())


def test_pieces_of_the_target_alone_are_written_after_the_way_there_and_back(
    tmp_path: Path,
) -> None:
    several = ImportOptions(pairs=(("en", "de"), ("en", "zh-Hans"), ("en", "pt-BR")))
    marian_folder(tmp_path / "hub", tags=MARIAN_TAGS, languages=None)
    convert(
        tmp_path / "hub",
        tmp_path / "ours",
        importers=IMPORTERS,
        compute="float32",
        options=several,
    )
    ours = load_checkpoint(tmp_path / "ours")
    export_ctranslate2(ours, tmp_path / "engine")
    imported = CTranslate2Importer().read(tmp_path / "engine", several)
    again = imported_checkpoint(imported)
    target = PieceModel((tmp_path / "engine" / "target.spm").read_bytes())
    source = PieceModel((tmp_path / "engine" / "source.spm").read_bytes())
    alone = {piece for piece in target.table() if source.own_id(piece) is None}
    assert len(alone) > 50
    assert again.tokenizer.target_pieces() == ours.tokenizer.target_pieces()
    tokens = ours.manifest.tokens
    assert {*imported.tokens.suppressed_ids} == {*tokens.suppressed_ids, tokens.unk_id}


def read(directory: Path, family: str | None = None) -> ImportedModel:
    return CTranslate2Importer().read(directory, ImportOptions(family=family))


def problems_of(directory: Path, options: ImportOptions) -> tuple[str, ...]:
    with pytest.raises(ForeignModelError) as caught:
        CTranslate2Importer().read(directory, options)
    return caught.value.problems


def tagged_directory(folder: Path, *tokens: str, **shape: object) -> Path:
    """The usual random directory, some of whose pieces are language tokens."""
    pieces = opennmt_pieces()
    pieces[77 : 77 + len(tokens)] = tokens
    return random_directory(folder, RandomSpec(source=pieces, **shape))  # type: ignore[arg-type]


def test_tokens_of_two_families_are_told_apart_by_the_depths(tmp_path: Path) -> None:
    equal = tagged_directory(tmp_path / "equal", "__en__", "__de__")
    imported = read(equal)
    assert imported.family == "M2M100"
    assert imported.tokens.has_source_eos
    assert {(pair.source_prefix, pair.target_prefix) for pair in imported.pairs} == {
        (("__en__",), ("__de__",)),
        (("__de__",), ("__en__",)),
    }
    shallow = tagged_directory(tmp_path / "shallow", "__en__", "__de__", num_layers=(3, 1))
    (problem,) = problems_of(shallow, ImportOptions())
    assert problem == (
        "its vocabulary has language tokens such as '__en__', and no file beside it"
        " (tokenizer_config.json) says where they stand; --family m2m100 or --family small100 does"
    )
    for family, prefix in (("m2m100", ("__en__",)), ("small100", ("__de__",))):
        (pair,) = (pair for pair in read(shallow, family).pairs if pair.target == "de")
        assert pair.source_prefix == prefix


@pytest.mark.parametrize(
    ("name", "title"), [("SMALL100Tokenizer", "SMaLL-100"), ("M2M100TokenizerFast", "M2M100")]
)
def test_a_tokenizers_file_beside_says_which_family_it_is(
    tmp_path: Path, name: str, title: str
) -> None:
    directory = tagged_directory(tmp_path / "engine", "__en__", "__de__", num_layers=(3, 1))
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": name})
    assert read(directory).family == title


def test_a_tokenizers_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    directory = tagged_directory(tmp_path / "engine", "__en__", "__de__")
    (directory / "tokenizer_config.json").write_text("[]")
    assert problems_of(directory, ImportOptions()) == ("tokenizer_config.json: is no JSON object",)


def test_a_family_that_the_vocabulary_is_not_of_is_refused(tmp_path: Path) -> None:
    directory = tagged_directory(tmp_path / "engine", "__en__", "__de__")
    (problem,) = problems_of(directory, ImportOptions(family="nllb"))
    assert problem.startswith("its vocabulary has no tokens of NLLB")


def test_directions_can_be_narrowed(tmp_path: Path) -> None:
    directory = tagged_directory(tmp_path / "engine", "eng_Latn", "deu_Latn", "zho_Hans")
    imported = CTranslate2Importer().read(directory, FROM_ENGLISH)
    assert [(pair.source, pair.target) for pair in imported.pairs] == [("en", "de")]
    assert imported.languages == ()
    names = {"eng_Latn", "deu_Latn", "zho_Hans"}
    assert names & set(imported.tokenizer.tables()[1]) == {"eng_Latn", "deu_Latn"}
    (problem,) = problems_of(directory, ImportOptions(pairs=(("en", "fr"),)))
    assert problem == "does not have fr; it has de, en, zh-Hans"


def test_nllb_with_tags_behind_sentences_is_refused(tmp_path: Path) -> None:
    directory = tagged_directory(tmp_path / "engine", "eng_Latn", "deu_Latn")
    write_json(directory / "tokenizer_config.json", {"legacy_behaviour": True})
    (problem,) = problems_of(directory, ImportOptions())
    assert "legacy_behaviour is true" in problem


def test_english_alone_is_the_source_where_the_name_says_so(tmp_path: Path) -> None:
    name = "mbart-large-50-one-to-many-mmt"
    imported = read(tagged_directory(tmp_path / name, *MBART_CODES[:6]))
    assert {pair.source for pair in imported.pairs} == {"en"}
    assert len(imported.pairs) == 5


def test_targets_of_marian_have_tokens_and_their_source_must_be_named(tmp_path: Path) -> None:
    marian = {"starts_from_zero": True, "pre_norm": False}
    tokens = (">>deu<<", ">>cmn<<", ">>cmn_Hans<<")
    (problem,) = problems_of(
        tagged_directory(tmp_path / "mine", *tokens, **marian), ImportOptions()
    )
    assert problem == (
        "its files do not say from which language it translates; name the directions, with targets"
        " of de, zh-Hans"
    )
    named = read(tagged_directory(tmp_path / "opus-mt-en-mul-ct2", *tokens, **marian))
    assert {(pair.source, pair.target): pair.source_prefix for pair in named.pairs} == {
        ("en", "de"): (">>deu<<",),
        ("en", "zh-Hans"): (">>cmn_Hans<<",),
    }


@pytest.mark.parametrize("tag", ["__de__", ">>deu<<", "<2de>", "deu_Latn"])
def test_one_token_alone_is_refused(tmp_path: Path, tag: str) -> None:
    (problem,) = problems_of(tagged_directory(tmp_path / "engine", tag), FROM_ENGLISH)
    assert f"language tokens (1, the first is '{tag}')" in problem


def test_a_piece_like_a_token_on_each_side_is_no_family(tmp_path: Path) -> None:
    source, target = opennmt_pieces(), opennmt_pieces()
    source[77], target[77] = "en_XX", "de_DE"
    spec = RandomSpec(source=source, target=target, is_shared=False)
    (problem,) = problems_of(random_directory(tmp_path / "engine", spec), FROM_ENGLISH)
    assert "language tokens (1, the first is 'en_XX')" in problem


def test_files_that_do_not_say_the_languages_are_refused(tmp_path: Path) -> None:
    directory = random_directory(tmp_path / "engine")
    (problem,) = problems_of(directory, ImportOptions())
    assert problem == "its files do not say which languages it translates; name the directions"


def test_where_no_pieces_can_be_made_of_tokenizer_json_the_problem_names_the_remedy(
    tmp_path: Path,
) -> None:
    directory = tagged_directory(tmp_path / "engine", "eng_Latn", "deu_Latn")
    (directory / "sentencepiece.model").unlink()
    (directory / "tokenizer.json").write_text("{}")
    (problem,) = problems_of(directory, ImportOptions())
    assert "none can be made of tokenizer.json (its model is None, not Unigram or BPE)" in problem
    assert "copy it from the model that this one was made of" in problem

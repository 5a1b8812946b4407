"""What an export carries along and the import finds again, by every family and format."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from model.checkpoint.manifest import Licence, Manifest
from model.checkpoint.tokenizer import build_tokenizer
from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import LengthLimits
from model.errors import ForeignModelError
from model.exchange.export.ctranslate2 import export_ctranslate2
from model.exchange.export.huggingface.exporter import export_huggingface
from model.exchange.export.marian.exporter import export_marian
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.text.languages.tags import Language, LanguagePair, all_pairs
from support.foreign_folders import (
    MADLAD_SYMBOLS,
    change_json,
    trained_spm,
    write_fsmt,
    write_mbart,
    write_t5,
)
from support.huggingface_folders import m2m100_folder, marian_folder
from support.marian_oracle import FIXTURES

Pairs = tuple[tuple[str, str], ...]
EN_DE: Pairs = (("en", "de"),)
LICENCES = (
    Licence(corpus="Some news", licence="CC-BY-4.0", url="https://example.org/news"),
    Licence(corpus="Some talks", licence="CC-BY-NC-ND-4.0"),
)
LIMITS = LengthLimits(max_source_length=41, max_target_length=37)


@dataclass(frozen=True)
class Case:
    """A network: how its folder is written, and the directions that are taken of it."""

    write: Callable[[Path], object]
    pairs: Pairs
    to_ctranslate2: bool = True


def opus(*tags: str) -> Callable[[Path], object]:
    return lambda folder: marian_folder(folder, tags=tags, languages=None)


def madlad(folder: Path) -> None:
    spm = trained_spm(symbols=MADLAD_SYMBOLS, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    write_t5(folder, spm=spm, pad_token_id=1, eos_token_id=2, decoder_start_token_id=0)


def first_t5(folder: Path) -> None:
    spm = trained_spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    settings = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    write_t5(folder, spm=spm, head="tied", feed_forward_proj="relu", **settings)


def m2m100(kind: str, **more: object) -> Callable[[Path], object]:
    return lambda folder: m2m100_folder(folder, kind=kind, **more)


TAGS = (">>deu<<", ">>fra<<", ">>pt_br<<")
CASES: dict[str, Case] = {
    "opus": Case(opus(), EN_DE),
    "opus, 1 target of 3": Case(opus(*TAGS), EN_DE),
    "opus, 2 targets of 3": Case(opus(*TAGS), (("en", "de"), ("en", "fr"))),
    "own tags, both ways": Case(opus(">>de<<", ">>en<<"), (("en", "de"), ("de", "en"))),
    "m2m100": Case(m2m100("m2m100"), ()),
    "m2m100, 1 of 9,900": Case(m2m100("m2m100"), EN_DE),
    "m2m100, 3 of 9,900": Case(m2m100("m2m100"), (("en", "de"), ("fr", "de"), ("de", "en"))),
    "wmt21": Case(m2m100("wmt21"), EN_DE),
    "nllb": Case(m2m100("nllb"), ()),
    "nllb, 1 of 40,602": Case(m2m100("nllb"), EN_DE),
    "mbart, 1 target": Case(write_mbart, EN_DE),
    "mbart, 2 targets": Case(write_mbart, (("en", "de"), ("en", "ro"))),
    "madlad": Case(madlad, EN_DE),
    "t5": Case(first_t5, EN_DE),
    "fsmt": Case(lambda folder: write_fsmt(folder, is_joint=False), EN_DE, to_ctranslate2=False),
}


def converted(source: Path, destination: Path, pairs: Pairs = ()) -> Checkpoint:
    options = ImportOptions(pairs=pairs)
    convert(source, destination, importers=IMPORTERS, compute="float32", options=options)
    return load_checkpoint(destination)


def changed(checkpoint: Checkpoint, **changes: object) -> Checkpoint:
    manifest = replace(checkpoint.manifest, **changes)  # type: ignore[arg-type]  # its own fields
    return replace(checkpoint, manifest=manifest)


def own(source: Path, destination: Path, pairs: Pairs, licence: str) -> Checkpoint:
    """The checkpoint of a folder, with facts that no family would have by itself."""
    found = converted(source, destination, pairs)
    return changed(found, limits=LIMITS, licence=licence, licences=LICENCES)


def facts(manifest: Manifest) -> tuple[object, ...]:
    pairs = {(pair.source, pair.target): pair for pair in manifest.pairs}
    tokens = (manifest.tokens.suppressed_ids, manifest.tokens.start_id)
    return manifest.limits, pairs, manifest.languages, tokens, manifest.licence, manifest.licences


@pytest.mark.parametrize("name", CASES)
def test_a_folder_of_transformers_comes_back_with_all_that_it_was_made_of(
    name: str, tmp_path: Path
) -> None:
    case = CASES[name]
    case.write(tmp_path / "foreign")
    first = own(tmp_path / "foreign", tmp_path / "first", case.pairs, "CC-BY-NC-4.0")
    export_huggingface(first, tmp_path / "export")
    again = converted(tmp_path / "export", tmp_path / "again")
    assert facts(again.manifest) == facts(first.manifest)
    if case.pairs:
        assert {(pair.source, pair.target) for pair in again.manifest.pairs} == set(case.pairs)


def test_a_network_that_does_not_say_what_it_learned_from_says_nothing_afterwards(
    tmp_path: Path,
) -> None:
    marian_folder(tmp_path / "foreign", tags=TAGS, languages=None)
    first = changed(converted(tmp_path / "foreign", tmp_path / "first", EN_DE), licences=())
    export_huggingface(first, tmp_path / "export")
    page = (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    assert "does not say what it learned from." in page
    assert converted(tmp_path / "export", tmp_path / "again").manifest.licences == ()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.to_ctranslate2])
def test_a_directory_of_ctranslate2_comes_back_with_its_limits_directions_and_licences(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    case = CASES[name]
    case.write(tmp_path / "foreign")
    first = own(tmp_path / "foreign", tmp_path / "first", case.pairs, "CC-BY-SA-4.0")
    export_ctranslate2(first, tmp_path / "export")
    again = converted(tmp_path / "export", tmp_path / "again").manifest
    kept = first.manifest
    assert (again.limits, again.licence, again.licences) == (LIMITS, "CC-BY-SA-4.0", LICENCES)
    tags = [{(pair.source, pair.target) for pair in each.pairs} for each in (again, kept)]
    assert tags[0] == tags[1]


@pytest.mark.parametrize("name", ["student", "opus"])
def test_marians_own_files_come_back_with_all_that_they_were_made_of(
    name: str, tmp_path: Path
) -> None:
    pairs: Pairs = (("en", "de"), ("en", "fr")) if name == "opus" else ()
    first = own(FIXTURES / name, tmp_path / "first", pairs[:1], "research only")
    export_marian(first, tmp_path / "export")
    again = converted(tmp_path / "export", tmp_path / "again")
    assert facts(again.manifest) == facts(first.manifest)
    alone = converted(tmp_path / "export" / "model.npz", tmp_path / "alone")
    assert (alone.manifest.limits, alone.manifest.licence) == (LIMITS, "research only")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    marian_folder(tmp_path / "foreign", tags=TAGS, languages=None)
    first = own(tmp_path / "foreign", tmp_path / "first", EN_DE, "MIT")
    export_huggingface(first, tmp_path / "export")
    return tmp_path / "export"


def asked_as(folder: Path, tags: tuple[str, ...], pairs: tuple[LanguagePair, ...]) -> Checkpoint:
    """A network of Marian's kind that is asked for its directions in a way of its own."""
    marian_folder(folder / "foreign", tags=tags, languages=None)
    found = converted(folder / "foreign", folder / "first", (("en", pairs[0].target),))
    asked, tokenizer = changed(found, pairs=pairs), found.tokenizer
    tables = [
        {piece: index for index, piece in pieces.items()}
        for pieces in (tokenizer.source_pieces(), tokenizer.target_pieces())
    ]
    built = build_tokenizer(
        asked.manifest,
        source_model=tokenizer.models[0],
        target_model=tokenizer.models[1],
        source_table=tables[0],
        target_table=tables[1],
    )
    return replace(asked, tokenizer=built)


def to_targets(*prefixes: tuple[str, ...]) -> tuple[LanguagePair, ...]:
    """English into German, French, …, with what stands before the source."""
    return tuple(
        LanguagePair(source="en", target=target, source_prefix=prefix)
        for target, prefix in zip(("de", "fr"), prefixes, strict=True)
    )


OWN_TAGS = [("<2de>", "<2fr>"), ("__de__", "__fr__"), ("[DE]", "[FR]"), ("2de", "2fr")]


@pytest.mark.parametrize("engine", ["transformers", "CTranslate2"])
@pytest.mark.parametrize("tags", OWN_TAGS)
def test_a_network_that_is_asked_in_a_way_of_its_own_is_asked_so_again(
    tags: tuple[str, str], engine: str, tmp_path: Path
) -> None:
    first = asked_as(tmp_path, tags, to_targets(*((tag,) for tag in tags)))
    exported = exported_to(engine, first, tmp_path / "export")
    again = converted(exported, tmp_path / "again").manifest
    assert set(again.pairs) == set(first.manifest.pairs)
    one = converted(exported, tmp_path / "one", EN_DE).manifest
    assert one.pairs == first.manifest.pairs[:1]
    with pytest.raises(ForeignModelError) as caught:
        converted(exported, tmp_path / "other", (("en", "ro"),))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("engine", ["transformers", "CTranslate2"])
def test_languages_that_are_asked_for_in_a_way_of_their_own_come_back(
    engine: str, tmp_path: Path
) -> None:
    tags = ("[DE]", "[EN]", "[FR]")
    languages = tuple(Language(tag=tag[1:3].lower(), wanted_prefix=(tag,)) for tag in tags)
    first = asked_as(tmp_path, tags, all_pairs(languages))
    first = changed(first, languages=languages)
    exported = exported_to(engine, first, tmp_path / "export")
    again = converted(exported, tmp_path / "again").manifest
    assert (again.languages, again.pairs) == (languages, all_pairs(languages))


def test_of_two_tokens_for_a_language_the_one_that_was_asked_with_comes_back(
    tmp_path: Path,
) -> None:
    asked = LanguagePair(source="en", target="zh-Hans", source_prefix=(">>zho_Hans<<",))
    first = asked_as(tmp_path, (">>cmn_Hans<<", ">>zho_Hans<<"), (asked,))
    exported = exported_to("transformers", first, tmp_path / "export")
    assert converted(exported, tmp_path / "again").manifest.pairs == (asked,)


def exported_to(engine: str, checkpoint: Checkpoint, output: Path) -> Path:
    if engine == "transformers":
        export_huggingface(checkpoint, output)
    else:
        pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
        export_ctranslate2(checkpoint, output)
    return output


def test_sources_that_begin_with_bos_begin_so_in_the_export_and_again(tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    m2m100_folder(tmp_path / "foreign")
    found = converted(tmp_path / "foreign", tmp_path / "first", EN_DE)
    export_ctranslate2(found, tmp_path / "engine")
    change_json(tmp_path / "engine" / "config.json", add_source_bos=True)
    begun = converted(tmp_path / "engine", tmp_path / "begun")
    assert begun.manifest.pairs == found.manifest.pairs  # what was carried along goes before
    (tmp_path / "engine" / "dragoman.json").unlink()
    begun = converted(tmp_path / "engine", tmp_path / "bos", EN_DE)
    (pair,) = begun.manifest.pairs
    assert pair.source_prefix == ("<s>", "__en__")
    export_ctranslate2(begun, tmp_path / "export")
    config = json.loads((tmp_path / "export" / "config.json").read_text())
    assert config["add_source_bos"] is True
    assert converted(tmp_path / "export", tmp_path / "again").manifest.pairs == (pair,)
    (tmp_path / "export" / "dragoman.json").unlink()
    assert converted(tmp_path / "export", tmp_path / "bare", EN_DE).manifest.pairs == (pair,)


def test_what_a_person_says_goes_before_what_was_carried_along(
    exported: Path, tmp_path: Path
) -> None:
    manifest = convert(
        exported,
        tmp_path / "again",
        importers=IMPORTERS,
        licence="Apache-2.0",
        options=ImportOptions(pairs=(("en", "fr"),)),
    )
    assert [(pair.source, pair.target) for pair in manifest.pairs] == [("en", "fr")]
    assert (manifest.licence, manifest.limits) == ("Apache-2.0", LIMITS)


def test_a_folder_whose_readme_was_lost_still_has_its_licence(
    exported: Path, tmp_path: Path
) -> None:
    (exported / "README.md").unlink()
    assert converted(exported, tmp_path / "again").manifest.licence == "MIT"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"limits": {"max_source_length": 2000, "max_target_length": 9}}, "embeddings is 1024"),
        ({"limits": {"max_source_length": 2, "max_target_length": 9}}, "must be at least 3"),
        ({"pairs": [{"source": "en", "target": "tlh"}]}, "no token for the target tlh; it has de"),
        (
            {"pairs": [{"source": "en", "target": "de", "source_prefix": ["[DE]"]}]},
            "source vocabulary lacks the prefix '[DE]'",
        ),
        ({"licences": [{"corpus": "a\nb", "licence": "MIT"}]}, "no control characters"),
        ({"licence": []}, "config.json: dragoman.licence is []; it must be a string"),
    ],
)
def test_strangers_facts_are_refused_in_one_line(
    exported: Path, tmp_path: Path, value: dict[str, object], problem: str
) -> None:
    change_json(exported / "config.json", dragoman={"format": 1, **value})
    with pytest.raises(ForeignModelError) as caught:
        converted(exported, tmp_path / "again", () if "pairs" in str(value) else EN_DE)
    (line,) = caught.value.problems
    assert problem in line
    assert not (tmp_path / "again").exists()


def test_limits_beyond_a_learned_table_are_refused(tmp_path: Path) -> None:
    write_mbart(tmp_path / "foreign")
    export_huggingface(converted(tmp_path / "foreign", tmp_path / "first", EN_DE), tmp_path / "hf")
    limits = {"max_source_length": 64, "max_target_length": 65}
    change_json(tmp_path / "hf" / "config.json", dragoman={"format": 1, "limits": limits})
    with pytest.raises(ForeignModelError, match="max_target_length is 65; max_position_embeddings"):
        converted(tmp_path / "hf", tmp_path / "again", EN_DE)


def test_problems_of_what_is_carried_are_told_beside_all_others(
    exported: Path, tmp_path: Path
) -> None:
    config = json.loads((exported / "config.json").read_text())
    changes = {"dragoman": {"format": 1, "limits": 3}, "activation_function": "tanh"}
    (exported / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ForeignModelError) as caught:
        converted(exported, tmp_path / "again", EN_DE)
    assert [problem.partition(" is ")[0] for problem in caught.value.problems] == [
        "config.json: dragoman.limits",
        "config.json: activation_function",
    ]

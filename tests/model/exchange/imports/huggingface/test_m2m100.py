import json
from pathlib import Path

import pytest
from transformers import M2M100Config, M2M100Tokenizer, NllbTokenizer, PreTrainedTokenizerBase

from model.checkpoint.description.config_file import read_manifest
from model.errors import ForeignModelError
from model.exchange.imports.huggingface.m2m100 import HuggingFaceM2M100
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.text.subwords.pieces import PieceModel
from support.foreign_folders import change_json
from support.huggingface_folders import NLLB_CODES, ODD_LINES, SENTENCES, m2m100_folder
from support.imported_twins import Twins, compare_hypotheses, compare_network, imported_twins

KINDS = ["m2m100", "wmt21", "small100", "nllb"]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def twins(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    base = tmp_path_factory.mktemp(kind)
    return imported_twins(m2m100_folder(base / "folder", kind=kind), base / "out")


def test_encoder_output_and_logits_are_those_of_transformers(twins: Twins) -> None:
    compare_network(twins, SENTENCES[:12], twins.pair("en", "de"))


def test_hypotheses_and_scores_are_those_of_generate(twins: Twins) -> None:
    comparison = compare_hypotheses(twins, SENTENCES[:20], twins.pair("en", "de"))
    assert comparison.differences == []
    assert len(comparison.ties) <= 1
    assert comparison.num_hypotheses == 80


def reference(twins: Twins, kind: str) -> PreTrainedTokenizerBase:
    """The tokenizer of transformers for English to German."""
    if kind == "nllb":
        return NllbTokenizer.from_pretrained(twins.folder, src_lang="eng_Latn", tgt_lang="deu_Latn")
    # SMaLL-100 has a file of its own on the hub: M2M100's tokenizer, with the target's tag.
    source = "de" if kind == "small100" else "en"
    codes = "wmt21" if kind == "wmt21" else "m2m100"
    return M2M100Tokenizer.from_pretrained(
        twins.folder, src_lang=source, tgt_lang="de", language_codes=codes
    )


def test_tokens_are_those_of_the_tokenizer_of_transformers(twins: Twins, kind: str) -> None:
    theirs, ours = reference(twins, kind), twins.checkpoint.tokenizer
    pair = twins.pair("en", "de")
    # Of a SentencePiece file alone, transformers numbers NLLB's codes otherwise than in its own,
    # and keeps a space at a line's end, which no segment has.
    table = dict(ours.source_pieces())
    tags = {"nllb": "eng_Latn", "small100": "__de__"}
    for line in map(str.rstrip, [*SENTENCES, *ODD_LINES]):
        first, *ids = theirs(line).input_ids
        mine, *others = ours.encode(line, pair)
        assert others == ids
        assert kind == "nllb" or mine == first
        assert table[mine] == tags.get(kind, "__en__")
        assert ours.decode(ids).strip() == theirs.decode(ids, skip_special_tokens=True).strip()


def test_the_target_is_asked_for_after_the_start_token(twins: Twins, kind: str) -> None:
    prefix = twins.checkpoint.tokenizer.target_prefix(twins.pair("en", "de"))
    names = twins.checkpoint.tokenizer.target_pieces()
    asked = [] if kind == "small100" else ["deu_Latn" if kind == "nllb" else "__de__"]
    assert prefix[0] == 2
    assert [names[index] for index in prefix[1:]] == asked


def test_every_language_is_translated_into_every_other(twins: Twins, kind: str) -> None:
    manifest = twins.checkpoint.manifest
    num_languages = {"m2m100": 100, "small100": 100, "wmt21": 8, "nllb": 202}[kind]
    assert len(manifest.languages) == num_languages
    assert len(manifest.pairs) == num_languages * (num_languages - 1)
    stated = json.loads((twins.folder.parent / "out" / "config.json").read_text())
    assert (stated["schema_version"], stated["pairs"]) == (2, [])
    assert read_manifest(twins.folder.parent / "out") == manifest


def imported(folder: Path, *pairs: tuple[str, str]) -> ImportedModel:
    return HuggingFaceM2M100().read(folder, ImportOptions(pairs=pairs))


def test_codes_of_nllb_stand_behind_the_pieces_in_their_order(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "nllb", kind="nllb")
    table = imported(folder).tokenizer.source_table
    assert table is not None
    pieces = [piece for piece in table if piece not in NLLB_CODES]
    assert [table[code] for code in NLLB_CODES] == list(range(len(pieces), len(pieces) + 202))
    assert [table[piece] for piece in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]


def test_ids_that_the_files_state_for_codes_are_taken(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "nllb", kind="nllb")
    stated = {"tokenizer_class": "NllbTokenizer"}
    added = {
        "300": {"content": "deu_Latn"},
        "301": {"content": "eng_Latn"},
        "302": {"content": "x"},
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps({**stated, "added_tokens_decoder": added})
    )
    model = imported(folder)
    assert model.tokenizer.source_table is not None
    assert model.tokenizer.source_table["deu_Latn"] == 300
    assert {language.tag for language in model.languages} == {"de", "en"}


def test_an_id_of_thousands_of_digits_is_a_problem(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "nllb", kind="nllb")
    added = {"9" * 5000: {"content": "deu_Latn"}, "301": {"content": "eng_Latn"}}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "NllbTokenizer", "added_tokens_decoder": added})
    )
    with pytest.raises(ForeignModelError, match="added_tokens_decoder has an id of 5000 digits"):
        imported(folder)


def test_directions_can_be_narrowed(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "nllb", kind="nllb")
    model = imported(folder, ("en", "zh-Hans"), ("de", "en"))
    assert model.languages == ()
    assert {(pair.source, pair.target): pair.target_prefix for pair in model.pairs} == {
        ("en", "zh-Hans"): ("zho_Hans",),
        ("de", "en"): ("eng_Latn",),
    }
    source, target = model.tokenizer.tables()
    assert {code for code in NLLB_CODES if code in target} == {"zho_Hans", "eng_Latn"}
    assert set(NLLB_CODES) < set(source)
    assert source["deu_Latn"] in model.tokens.suppressed_ids
    with pytest.raises(ForeignModelError, match="does not have tlh; it has ace, "):
        imported(folder, ("en", "tlh"))


def test_fillers_and_the_mask_are_never_generated(tmp_path: Path) -> None:
    network, suppressed = (model := imported(m2m100_folder(tmp_path / "m"))).network, 8
    size = network.output_size
    assert model.tokens.suppressed_ids == tuple(range(size - suppressed, size))
    assert (network.norm_placement, network.position_offset) == ("pre", 2)


def test_embeddings_are_scaled_where_the_config_does_not_say(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    del config["scale_embedding"]
    (folder / "config.json").write_text(json.dumps(config))
    expected = M2M100Config.from_pretrained(folder).scale_embedding
    assert imported(folder).network.scale_embedding is expected is True


@pytest.mark.parametrize("sign", ["code", "folder", "origin"])
def test_small100_is_known_though_its_files_name_m2m100s_tokenizer(
    tmp_path: Path, sign: str
) -> None:
    folder = m2m100_folder(tmp_path / ("my-SMaLL100" if sign == "folder" else "m"))
    assert imported(folder).languages[0].target_prefix or sign == "folder"
    if sign == "code":
        (folder / "tokenization_small100.py").write_text("")
    if sign == "origin":
        config = json.loads((folder / "config.json").read_text())
        stated = json.dumps(config | {"_name_or_path": "alirezamsh/small100"})
        (folder / "config.json").write_text(stated)
    model = imported(folder, ("en", "de"))
    assert (model.family, model.pairs[0].source_prefix) == ("SMaLL-100", ("__de__",))
    assert model.pairs[0].target_prefix == ()


def test_a_shallow_decoder_is_m2m100_or_small100_and_a_person_says_which(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "m", encoder_layers=3, decoder_layers=1)
    with pytest.raises(ForeignModelError, match="--family m2m100 or --family small100 does"):
        imported(folder, ("en", "de"))
    for family, prefix in (("m2m100", "__en__"), ("small100", "__de__")):
        options = ImportOptions(pairs=(("en", "de"),), family=family)
        (pair,) = HuggingFaceM2M100().read(folder, options).pairs
        assert pair.source_prefix == (prefix,)
    (folder / "tokenization_small100.py").write_text("")
    assert imported(folder, ("en", "de")).family == "SMaLL-100"


def test_a_shallow_decoder_is_m2m100s_in_an_export_and_not_for_any_key_of_that_name(
    tmp_path: Path,
) -> None:
    folder = m2m100_folder(tmp_path / "m", encoder_layers=3, decoder_layers=1)
    for value in (None, True, "me/dragoman-model", {"licence": "MIT"}):
        change_json(folder / "config.json", dragoman=value)
        with pytest.raises(ForeignModelError, match="--family m2m100 or --family small100 does"):
            imported(folder, ("en", "de"))
    change_json(folder / "config.json", dragoman={"format": 1})
    assert imported(folder, ("en", "de")).family == "M2M100"


@pytest.mark.parametrize("kind", ["nllb", "wmt21"])
def test_a_family_that_the_files_tell_cannot_be_another(tmp_path: Path, kind: str) -> None:
    folder = m2m100_folder(tmp_path / "m", kind=kind)
    with pytest.raises(ForeignModelError, match="--family small100 is another"):
        HuggingFaceM2M100().read(folder, ImportOptions(family="small100"))
    plain = m2m100_folder(tmp_path / "plain")
    with pytest.raises(ForeignModelError, match="M2M100's; --family madlad is another"):
        HuggingFaceM2M100().read(plain, ImportOptions(family="madlad"))


@pytest.mark.parametrize(("kind", "german"), [("m2m100", "__de__"), ("nllb", "deu_Latn")])
def test_a_forced_first_token_is_the_only_target(tmp_path: Path, kind: str, german: str) -> None:
    folder = m2m100_folder(tmp_path / "m", kind=kind)
    whole = imported(folder)
    assert whole.tokenizer.source_table is not None
    path = folder / "generation_config.json"
    forced = {"forced_bos_token_id": whole.tokenizer.source_table[german]}
    path.write_text(json.dumps(json.loads(path.read_text()) | forced))
    model = imported(folder)
    assert (model.languages, len(model.pairs)) == ((), len(whole.languages) - 1)
    assert {pair.target for pair in model.pairs} == {"de"}
    assert {pair.target for pair in imported(folder, ("de", "en")).pairs} == {"en"}
    for other in (0, "5", None, True, 10**9):
        path.write_text(json.dumps({"forced_bos_token_id": other}))
        assert imported(folder).languages == whole.languages


def test_a_token_that_only_config_json_forces_counts_where_no_search_is_described(
    tmp_path: Path,
) -> None:
    folder = m2m100_folder(tmp_path / "m")
    table = imported(folder).tokenizer.source_table
    assert table is not None
    change_json(folder / "config.json", forced_bos_token_id=table["__de__"])
    assert len(imported(folder).languages) == 100
    (folder / "generation_config.json").unlink()
    model = imported(folder)
    assert {pair.target for pair in model.pairs} == {"de"}
    assert (
        "It forces de (forced_bos_token_id), its only target; a conversion that names"
        " directions has others." in model.notes
    )
    assert not any("forces" in note for note in imported(folder, ("de", "en")).notes)


def test_a_forced_token_and_a_name_that_leave_nothing_are_both_told(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "my-x-en")
    table = imported(folder).tokenizer.source_table
    assert table is not None
    change_json(folder / "generation_config.json", forced_bos_token_id=table["__de__"])
    with pytest.raises(ForeignModelError) as caught:
        imported(folder)
    (problem,) = caught.value.problems
    assert "forces de, into which its name (my-x-en) leaves no direction" in problem


@pytest.mark.parametrize(("kind", "family"), [("nllb", "nllb"), ("wmt21", "m2m100")])
def test_the_very_family_that_the_files_tell_may_be_named(
    tmp_path: Path, kind: str, family: str
) -> None:
    folder = m2m100_folder(tmp_path / "m", kind=kind)
    named = HuggingFaceM2M100().read(folder, ImportOptions(family=family))
    assert named.pairs == imported(folder).pairs


@pytest.mark.parametrize(
    ("called", "stated", "sides"),
    [
        ("wmt21-x-en", "facebook/wmt21-dense-24-wide-en-x", {("target", "en")}),
        ("mine", "facebook/wmt21-dense-24-wide-en-x", {("source", "en")}),
    ],
)
def test_directions_are_told_by_the_folder_before_what_it_was_made_from(
    tmp_path: Path, called: str, stated: str, sides: set[tuple[str, str]]
) -> None:
    folder = m2m100_folder(tmp_path / called, kind="wmt21")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"_name_or_path": stated}))
    model = imported(folder)
    assert (len(model.pairs), model.name) == (7, called)
    assert {(side, getattr(pair, side)) for pair in model.pairs for side, _ in sides} == sides


def test_nllb_with_tags_behind_sentences_is_refused(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "nllb", kind="nllb")
    path = folder / "tokenizer_config.json"
    stated = json.loads(path.read_text())
    path.write_text(json.dumps(stated | {"legacy_behaviour": False}))
    assert imported(folder).languages
    path.write_text(json.dumps(stated | {"legacy_behaviour": True}))
    with pytest.raises(ForeignModelError, match="legacy_behaviour is true"):
        imported(folder)


def test_a_mixture_of_experts_is_refused(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "nllb-moe"}))
    assert HuggingFaceM2M100().recognises(folder)
    with pytest.raises(ForeignModelError, match="mixture of experts"):
        imported(folder)


def saved_again(folder: Path, *more: str) -> Path:
    """The folder as transformers 5 saves it: without a SentencePiece file."""
    theirs = NllbTokenizer.from_pretrained(folder)
    theirs.add_tokens(list(more), special_tokens=True)
    (folder / "sentencepiece.bpe.model").unlink()
    theirs.save_pretrained(folder)
    assert not (folder / "sentencepiece.bpe.model").exists()
    return folder


def test_a_sentencepiece_file_is_made_of_tokenizer_json(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "m", kind="nllb")
    before = imported(folder, ("en", "de"), ("de", "en"))
    saved_again(folder)
    after = imported(folder, ("en", "de"), ("de", "en"))
    ours, theirs = (PieceModel(model.tokenizer.source_pieces) for model in (after, before))
    assert ours.table() == theirs.table()
    ids, old_ids = (model.tokenizer.tables()[0] for model in (after, before))
    assert {piece: ids[piece] for piece in ours.table()} == {
        piece: old_ids[piece] for piece in theirs.table()
    }


def test_where_none_can_be_made_the_one_problem_names_the_remedy(tmp_path: Path) -> None:
    folder = saved_again(m2m100_folder(tmp_path / "m", kind="nllb"))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ForeignModelError) as caught:
        imported(folder, ("de", "en"))
    (problem,) = caught.value.problems
    assert problem == (
        "sentencepiece.bpe.model is missing, and none can be made of tokenizer.json (its model is"
        " None, not Unigram or BPE); copy it from the model that this one was made of"
    )


def test_languages_that_only_tokenizer_json_has_are_offered_with_its_ids(tmp_path: Path) -> None:
    folder = m2m100_folder(tmp_path / "m", kind="nllb")
    spm = (folder / "sentencepiece.bpe.model").read_bytes()
    saved_again(folder, "tyv_Cyrl")
    (folder / "sentencepiece.bpe.model").write_bytes(spm)
    theirs = NllbTokenizer.from_pretrained(folder)
    model = imported(folder, ("tyv", "de"), ("de", "tyv"))
    table = model.tokenizer.tables()[0]
    for code in ("tyv_Cyrl", "deu_Latn"):
        assert table[code] == theirs.convert_tokens_to_ids(code)

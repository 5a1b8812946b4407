import pytest

from model.exchange.imports.language_tokens import (
    FAMILIES,
    MBART_CODES,
    chosen_directions,
    mbart_tag,
    opus_directions,
    opus_name_pairs,
    opus_pairs,
    opus_tag,
    opus_tags,
)
from model.exchange.imports.languages import FLORES_CODES, flores_tag, language_tag
from model.text.languages.tags import canonical_tag, without_usual_script

_CODES = """
    Arab Armn Beng CA Cans Cher Cyrl Deva Ethi Geor Grek Gujr Guru Hans Hant Hebr IR Jpan Khmr
    Knda Kore Latn Mlym Mymr NL Orya RU Taml Telu Tfng Thaa Thai Tibt ZW abt ace ace_Arab acf
    ada adh ady af agr ahk ak akb alt alz am amu an ang ann ape ar arn ary arz as av awa ay az
    az_RU ba back_translated ban bar bas bbc bci be ber ber_Latn bew bg bg_Latn bgp bho bi bik
    bim bjn bjn_Arab bm bn bn_Latn bo bqc br bru brx bs bts btx bua bug bum bus bzj ca cab cac
    cak cbk cce ce ceb cfm ch chk chm chr ckb cnh co cr_Latn crh crh_Latn crs cs ctd_Latn ctu
    cuk cv cy da de din dje djk dln doi dov dtp dv dwr dyu dz ee el el_Latn emp en en_xx_simple
    enq eo es et eu fa ff ffm fi fil fip fj fo fon fr fr_CA frp fur fuv fy ga gag gbm gd gl gn
    gof gom gom_Latn gor grc gsw gu gu_Latn gub guc guh gui gv gvl gym ha haw he hi hi_Latn hif
    hil hmn hne ho hr ht hu hui hus hvn hy iba ibb id ify ig ilo inb io is iso it iu ium izz ja
    jac jam jiv jv jvn ka kaa kaa_Latn kac kbd kbp kek kg kha kj kjg kjh kk kl km kmb kmz_Latn
    kn kn_Latn knj ko koi kos kr kr_Arab krc kri ks ks_Deva ksd ksw ktu ku kum kv kw kwi ky la
    laj lb lg lhu li lij lmo ln lo lrc lt ltg lu lus lv mad mag mai mak mam mas mass maz mbt mdf
    meo meu mfe mg mgh mh mi min miq mk mkn ml ml_Latn mn mni mps mqy mr mrj mrw ms ms_Arab
    ms_Arab_BN msb msi msm mt mwl my myv nan_Latn_TW ndc_ZW nds nds_NL ne new ngu nhe nia nij
    niq nl nn nnb no noa nog nr nso nus nut nv ny nyu nzi oc oj om or os otq pa pag pap pau pck
    pis pl pon ppk prs ps pt qu qub quc quf quh qup quy qvc qvi qvz qxr raj rcf rki rm rmc rn ro
    rom ru ru_Latn rw rwo sa sah sat_Latn sc scn sd sda se seh sg sh shn shp si sja sk skr sl sm
    smt sn so spp sq sr srm srn ss st stq su sus suz sv sw sxn syr szl ta ta_Latn tab taj taq
    taq_Tfng tbz tca tcy tdx te te_Latn teo tet tg th ti tiv tk tks tlh tll tly_IR tn to toj tr
    translate transliterate trp ts tsc tsg tt tuc tvl twu tyv tyz tzh tzj tzm tzo ubu udm ug uk
    ur uz ve vec vi wa wal war wo wuu xal xh yap yi yo yua zap zh zh_Hant zh_Latn zne zu
    zxx_xx_dtynoise zza
"""
MADLAD_CODES = _CODES.split()
"""Of the tokens that its vocabulary has, besides an empty one."""
NO_LANGUAGE = {
    *("translate", "transliterate", "back_translated", "en_xx_simple", "zxx_xx_dtynoise"),
    *("CA", "IR", "NL", "RU", "ZW", "mass", ""),
}


def madlad_tokens() -> list[str]:
    return [f"<2{code}>" for code in (*MADLAD_CODES, "")]


def test_every_code_of_madlad_is_a_tag_of_its_own_or_listed_as_none() -> None:
    madlad, pieces = FAMILIES["madlad"], madlad_tokens()
    tokens = madlad.tokens(pieces)
    untagged = {piece[2:-1] for piece in madlad.untagged(pieces)}
    scripts = {code for code in MADLAD_CODES if code.istitle() and len(code) == 4}
    assert untagged == scripts | NO_LANGUAGE
    assert len(tokens) + len(untagged) == len(set(pieces)) == len(pieces)
    assert all(canonical_tag(tag) == tag for tag in tokens)
    known = {"zh-Hans": "zh", "zh-Hant": "zh_Hant", "nl": "nl", "ca": "ca", "quy": "quy"}
    known |= {"qu": "qu", "nan-Latn-TW": "nan_Latn_TW", "ms-Arab-BN": "ms_Arab_BN", "ber": "ber"}
    assert {tag: tokens[tag] for tag in known} == {tag: f"<2{code}>" for tag, code in known.items()}


def test_withdrawn_codes_are_those_of_today() -> None:
    found = FAMILIES["madlad"].tokens(["<2iw>", "<2in>", "<2jw>"])
    assert found == {"he": "<2iw>", "id": "<2in>", "jv": "<2jw>"}


def test_tags_of_mbart_are_language_tags() -> None:
    tags = [str(mbart_tag(code)) for code in MBART_CODES]
    assert tags == [canonical_tag(tag) for tag in tags]
    assert len(set(tags)) == len(MBART_CODES) == 52
    assert (mbart_tag("en_XX"), mbart_tag("zh_CN"), mbart_tag("tl_XX")) == ("en", "zh-Hans", "tl")
    assert mbart_tag("en_GB") is None


def test_a_token_with_a_script_goes_before_one_without() -> None:
    pieces = [">>cmn<<", ">>cmn_Hans<<", ">>deu<<", "deu", ">>ber<<"]
    opus = FAMILIES["opus-mt"]
    assert opus.tokens(pieces) == {"zh-Hans": ">>cmn_Hans<<", "de": ">>deu<<"}
    assert opus.untagged(pieces) == (">>cmn<<", ">>ber<<")


def test_the_usual_script_of_a_label_goes_without_saying() -> None:
    opus = FAMILIES["opus-mt"]
    labels = "aze_Latn kaz_Cyrl kaz_Latn kir_Cyrl bos_Latn srp_Cyrl srp_Latn uzb_Cyrl deu"
    tags = "az kk kk-Latn ky bs sr sr-Latn uz-Cyrl de"
    pieces = [f">>{label}<<" for label in labels.split()]
    assert opus.tokens(pieces) == dict(zip(tags.split(), pieces, strict=True))
    _, problems = opus_directions(pieces, (("en", "az"), ("en", "sr-Cyrl"), ("en", "uz")))
    assert problems == [f"has no token for the target uz; it has {', '.join(sorted(tags.split()))}"]
    pairs, _ = opus_directions(pieces, (("en", "az"), ("en", "sr-Cyrl")))
    assert [(pair.target, *pair.source_prefix) for pair in pairs] == [
        ("az", ">>aze_Latn<<"),
        ("sr", ">>srp_Cyrl<<"),
    ]


def test_a_label_beside_one_without_its_script_keeps_it() -> None:
    pieces = [">>tuk<<", ">>tuk_Latn<<", ">>cmn_Hans<<", ">>cmn_Hant<<"]
    assert FAMILIES["opus-mt"].tokens(pieces) == {
        "tk": ">>tuk<<",
        "tk-Latn": ">>tuk_Latn<<",
        "zh-Hans": ">>cmn_Hans<<",
        "zh-Hant": ">>cmn_Hant<<",
    }


def test_usual_scripts_are_those_of_flores() -> None:
    """The codes of NLLB with one script for a language say which is usual."""
    scripts: dict[str, set[str]] = {}
    for code in FLORES_CODES:
        tag = str(flores_tag(code))
        if "-" not in tag:
            scripts.setdefault(tag, set()).add(code[4:])
    for language, (script,) in scripts.items():
        for other in ("Arab", "Cyrl", "Deva", "Guru", "Hant", "Latn", "Tibt"):
            plain = without_usual_script(f"{language}-{other}")
            assert plain == f"{language}-{other}" or other == script


def test_codes_that_opus_alone_has_are_japanese_and_brazilian_portuguese() -> None:
    assert (opus_tag("jap"), opus_tag("pob"), opus_tag("por")) == ("ja", "pt-BR", "pt")
    assert (language_tag("jap"), language_tag("pob")) == ("jap", "pob")
    pieces = [">>pob<<", ">>por<<"]
    assert FAMILIES["opus-mt"].tokens(pieces) == {"pt-BR": ">>pob<<", "pt": ">>por<<"}
    assert opus_name_pairs("opus-mt-en-jap", []) == (("en", "ja"),)
    assert opus_name_pairs("opus-mt-jap-en", []) == (("ja", "en"),)


def test_tokens_stand_where_a_family_has_them() -> None:
    (both,) = FAMILIES["nllb"].languages(["deu_Latn"])
    (target,) = FAMILIES["small100"].languages(["__de__"])
    assert (both.source_prefix, both.target_prefix) == (("deu_Latn",), ("deu_Latn",))
    assert (target.wanted_prefix, target.source_prefix) == (("__de__",), ())


def test_names_say_that_english_is_the_only_source_or_target() -> None:
    languages = FAMILIES["m2m100"].languages(["__en__", "__de__", "__ha__"])
    names = {
        "wmt21-dense-24-wide-en-x": {("en", "de"), ("en", "ha")},
        "wmt21-dense-24-wide-x-en": {("de", "en"), ("ha", "en")},
        "mbart-large-50-many-to-one-mmt": {("de", "en"), ("ha", "en")},
    }
    for name, expected in names.items():
        kept, pairs, problems = chosen_directions(languages, (), names=(name, "x-en"))
        assert (kept, problems) == ((), [])
        assert {(pair.source, pair.target) for pair in pairs} == expected
    kept, pairs, _ = chosen_directions(languages, (), names=("opus-en-xh",))
    assert (len(kept), len(pairs)) == (3, 6)


def test_wanted_directions_are_taken_and_others_named() -> None:
    languages = FAMILIES["m2m100"].languages(["__en__", "__de__", "__ha__"])
    kept, pairs, problems = chosen_directions(languages, (("de", "en"),))
    assert (kept, problems) == ((), [])
    assert [(pair.source_prefix, pair.target_prefix) for pair in pairs] == [
        (("__de__",), ("__en__",))
    ]
    assert chosen_directions(languages, (("de", "fr"),)) == (
        *((), ()),
        ["does not have fr; it has de, en, ha"],
    )


def test_a_wanted_language_may_have_another_tag_than_the_networks() -> None:
    nllb = FAMILIES["nllb"].languages(["eng_Latn", "zho_Hans", "nob_Latn"])
    _, pairs, problems = chosen_directions(nllb, (("en", "zh"), ("en", "no"), ("en", "zh-Hans")))
    assert problems == []
    assert [(pair.target, pair.target_prefix) for pair in pairs] == [
        ("zh-Hans", ("zho_Hans",)),
        ("nb", ("nob_Latn",)),
    ]
    assert chosen_directions(nllb, (("zh", "zh-CN"),)) == (
        *((), ()),
        ["zh-Hans is asked for as source and target of one direction"],
    )
    pairs, problems = opus_directions([">>cmn_Hans<<", ">>cmn_Hant<<"], (("en", "zh"),))
    assert (pairs[0].target, pairs[0].source_prefix) == ("zh-Hans", (">>cmn_Hans<<",))
    assert problems == []


@pytest.mark.parametrize(
    ("code", "tags"),
    [
        ("cat_oci_spa", ("ca", "oc", "es")),
        ("cat+oci+spa", ("ca", "oc", "es")),
        ("fi_nb_no_nn_ru_sv_en", ("fi", "nb", "no", "nn", "ru", "sv", "en")),
        ("en_el", ("en", "el")),
        ("cmn_zho", ("zh-Hans",)),
        ("pt_br", ("pt-BR",)),
        ("es_MX+es_ES", ("es-MX", "es-ES")),
        ("cmn_Hant", ("zh-Hant",)),
        ("en", ("en",)),
        ("eng_gem", ()),
        ("NORTH_EU", ()),
        ("mul", ()),
    ],
)
def test_a_side_of_a_name_says_one_language_or_several(code: str, tags: tuple[str, ...]) -> None:
    assert opus_tags(code) == tags


def test_a_name_with_several_sources_has_a_pair_for_each() -> None:
    into_english = (("ca", "en"), ("oc", "en"), ("es", "en"))
    assert opus_name_pairs("opus-mt-tc-big-cat_oci_spa-en", []) == into_english
    assert opus_pairs(("cat_oci_spa", "eng"), []) == into_english
    pieces = [">>deu<<", ">>nld<<"]
    assert opus_name_pairs("opus-mt-tc-bible-big-deu_eng-gmw", pieces) == (
        *(("de", "nl"), ("en", "de"), ("en", "nl")),
    )
    assert opus_name_pairs("opus-mt-en-deu_nld", []) == ()


def test_an_opus_model_says_its_source_by_its_name_alone() -> None:
    pieces = [">>deu<<", ">>fra<<"]
    assert opus_name_pairs("opus-mt-tc-big-en-mul", pieces) == (("en", "de"), ("en", "fr"))
    assert opus_name_pairs("opus-mt-en-de", []) == (("en", "de"),)
    assert opus_name_pairs("mine", pieces) == ()
    pairs, problems = opus_directions(pieces, (("en", "fr"),))
    assert ([pair.source_prefix for pair in pairs], problems) == ([(">>fra<<",)], [])
    assert opus_directions(pieces, (("en", "es"),)) == (
        (),
        ["has no token for the target es; it has de, fr"],
    )

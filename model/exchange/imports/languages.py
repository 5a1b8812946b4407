"""Language codes of other programs as BCP-47 tags, and names of files as pairs of them.

Owns the tables: ISO 639-3 to the shorter code that BCP-47 prefers (RFC 5646, section 2.2.1), with
the languages that stand for their macrolanguage; the families of ISO 639-5; the 202 codes of
FLORES-200 in the order of NLLB's vocabulary. Owns the tag of what a person types for a language,
and which of a network's languages it is. What a tag may stand for is `model.text.languages.tags`.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from model.errors import InputError
from model.text.languages.tags import (
    ARGOS_CODES,
    canonical_tag,
    lenient_tag,
    lookup_tags,
    primary_language,
)


def _words(text: str) -> list[str]:
    return text.split()


_PREFERRED: Mapping[str, str] = dict(
    word.split(":")
    for word in _words("""
    aar:aa abk:ab afr:af aka:ak als:sq amh:am ara:ar arb:ar arg:an asm:as ava:av ave:ae ayr:ay
    aym:ay aze:az azj:az bak:ba bam:bm bel:be ben:bn bis:bi bod:bo bos:bs bre:br bul:bg cat:ca
    ces:cs cha:ch che:ce chu:cu chv:cv cmn:zh cor:kw cos:co cre:cr cym:cy dan:da deu:de div:dv
    dzo:dz ekk:et ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr
    fry:fy ful:ff gaz:om gla:gd gle:ga glg:gl glv:gv grn:gn gug:gn guj:gu hat:ht hau:ha hbs:sh
    heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy ibo:ig ido:io iii:ii iku:iu ile:ie ina:ia
    ind:id ipk:ik isl:is ita:it jav:jv jpn:ja kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khk:mn
    khm:km kik:ki kin:rw kir:ky kmr:ku knc:kr kom:kv kon:kg kor:ko kua:kj kur:ku lao:lo lat:la
    lav:lv lim:li lin:ln lit:lt ltz:lb lub:lu lug:lg lvs:lv mah:mh mal:ml mar:mr mkd:mk mlg:mg
    mlt:mt mon:mn mri:mi msa:ms mya:my nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn
    nob:nb nor:no npi:ne nya:ny oci:oc oji:oj ori:or orm:om ory:or oss:os pan:pa pbt:ps pes:fa
    pli:pi plt:mg pol:pl por:pt pus:ps que:qu quy:qu roh:rm ron:ro run:rn rus:ru sag:sg san:sa
    sin:si slk:sk slv:sl sme:se smo:sm sna:sn snd:sd som:so sot:st spa:es sqi:sq srd:sc srp:sr
    ssw:ss sun:su swa:sw swe:sv swh:sw tah:ty tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tir:ti
    ton:to tsn:tn tso:ts tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzb:uz uzn:uz ven:ve vie:vi
    vol:vo wln:wa wol:wo xho:xh ydd:yi yid:yi yor:yo zha:za zho:zh zsm:ms zul:zu
    """)
)
_LISTED = frozenset((*_PREFERRED, *_PREFERRED.values()))

FLORES_CODES: tuple[str, ...] = tuple(
    _words("""
    ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn amh_Ethi apc_Arab
    arb_Arab ars_Arab ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn
    bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva bjn_Arab bjn_Latn bod_Tibt
    bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn ckb_Arab crh_Latn cym_Latn
    dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn
    ewe_Latn fao_Latn pes_Arab fij_Latn fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gla_Latn
    gle_Latn glg_Latn grn_Latn guj_Gujr hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn
    hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn jav_Latn jpn_Jpan kab_Latn
    kac_Latn kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor knc_Arab knc_Latn kaz_Cyrl kbp_Latn
    kea_Latn khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kon_Latn kor_Hang kmr_Latn lao_Laoo
    lvs_Latn lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn lug_Latn
    luo_Latn lus_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn mkd_Cyrl plt_Latn mlt_Latn
    mni_Beng khk_Cyrl mos_Latn mri_Latn zsm_Latn mya_Mymr nld_Latn nno_Latn nob_Latn npi_Deva
    nso_Latn nus_Latn nya_Latn oci_Latn gaz_Latn ory_Orya pag_Latn pan_Guru pap_Latn pol_Latn
    por_Latn prs_Arab pbt_Arab quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng
    scn_Latn shn_Mymr sin_Sinh slk_Latn slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn
    spa_Latn als_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn szl_Latn tam_Taml
    tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi taq_Latn taq_Tfng tpi_Latn tsn_Latn
    tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn urd_Arab
    uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn yue_Hant zho_Hans
    zho_Hant zul_Latn
    """)
)

_KEPT_SCRIPTS = frozenset(
    _words("ace_Arab arb_Latn bjn_Arab kas_Deva knc_Arab min_Arab taq_Tfng zho_Hans zho_Hant")
)
"""Codes of a script that the language is not usually written in, or of one of two that are."""

_FAMILIES = frozenset(
    _words("""
    aav afa alg alv apa aqa aql art ath auf aus awd azc bad bai bat ber bih bnt btk cai cau cba ccn
    ccs cdc cdd cel cmc cpe cpf cpp crp csu cus day dmn dra egx esx euq fiu fox gem gme gmq gmw grk
    hmx hok hyx iir ijo inc ine ira iro itc jpx kar kdo khi kro map mkh mno mul mun myn nah nai ngf
    nic nub omq omv oto paa phi plf poz pqe pqw pra qwe roa sai sal sem sgn sio sit sla smi son sqj
    ssa syd tai tbq trk tup tut tuw und urj wak wen xgn xnd ypk zhx zle zls zlw znd
    """)
)
"""ISO 639-5, and what stands for several languages or an unknown one."""

_TOLD_APART = frozenset({"quy"})
"""Codes of `_PREFERRED` that a network tells from their macrolanguage (MADLAD-400)."""


def flores_tag(code: str) -> str | None:
    """The tag of a code such as `deu_Latn`, without a script that goes without saying.

    None of what is no such code: `zho_Hans` → `zh-Hans`, `eng_Latn` → `en`.
    """
    match = re.fullmatch(r"([a-z]{3})_([A-Z][a-z]{3})", code)
    if match is None:
        return None
    script = match[2] if code in _KEPT_SCRIPTS else None
    return "-".join(filter(None, (_PREFERRED.get(match[1], match[1]), script)))


def language_tag(code: str) -> str | None:
    """The tag of a code of two or three letters, with a script or a region: `deu`, `pt_br`.

    Chinese is named by its script: `zho` → `zh-Hans`, `cmn_Hant` and `zh_TW` → `zh-Hant`. None of
    what is none, or is that of a family of languages, or has a part of three letters behind the
    first: no program writes extended languages, but lists of languages (`cat_oci_spa`).
    """
    first, *rest = code.replace("_", "-").split("-")
    language = first.lower()
    if len(language) not in {2, 3} or language in _FAMILIES:
        return None
    if any(len(part) == 3 and part.isalpha() for part in rest):
        return None
    try:
        tag = canonical_tag("-".join((_PREFERRED.get(language, language), *rest)))
    except InputError:
        return None
    if primary_language(tag) != "zh":
        return tag
    return next((one for one in reversed(lookup_tags(tag)) if one != "zh"), tag)


def typed_tag(code: str) -> str:
    """The tag of a language as a person writes it: in any program's code, with `_` or `-`.

    `zh`, `zh_CN` and `zho_Hans` → `zh-Hans`; `eng` and `eng_Latn` → `en`; `pb` → `pt-BR`.

    Raises:
        InputError: It is none.
    """
    tag = ARGOS_CODES.get(code.lower()) or lenient_tag(code)
    language, _, rest = tag.partition("-")
    if f"{language}_{rest}" in FLORES_CODES:
        return flores_tag(f"{language}_{rest}") or tag
    is_region_of_chinese = language == "zh" and len(rest) == 2
    if is_region_of_chinese or (len(language) == 3 and language not in _TOLD_APART):
        return language_tag(tag) or tag
    return tag


def nearest_tag(tag: str, known: Container[str]) -> str:
    """Which of the known tags one stands for, as for a request; the tag itself if it is none."""
    preferred = language_tag(tag)
    more = () if preferred is None else lookup_tags(preferred)
    return next((nearer for nearer in (*lookup_tags(tag), *more) if nearer in known), tag)


def nearest_pairs(
    wanted: Sequence[tuple[str, str]], sources: Container[str], targets: Container[str]
) -> tuple[tuple[str, str], ...]:
    """Source and target tags, each the nearest that is known; every pair once."""
    pairs = ((nearest_tag(one, sources), nearest_tag(other, targets)) for one, other in wanted)
    return tuple(dict.fromkeys(pairs))


def split_pair(name: str) -> tuple[str, str] | None:
    """The tags of a name such as `ende`, `deu-eng` or `enzh_hant`; None if it is none."""
    for separator in ("-", ""):
        for place in range(2, len(name) - 1):
            left, right = name[:place], name[place:]
            if separator and not right.startswith(separator):
                continue
            tags = listed_tag(left), listed_tag(right.removeprefix(separator))
            if tags[0] is not None and tags[1] is not None:
                return tags[0], tags[1]
    return None


def plain_pair(name: str) -> tuple[str, str] | None:
    """As `split_pair`, of a name that may be a word (`data`, `base`): `en-de`, `eng-deu`, `engdeu`.

    Joined codes of two letters are too often one; a hyphen, or six letters, are a pair.
    """
    is_plain = "-" in name or (len(name) == 6 and name.isalpha())
    return split_pair(name) if is_plain else None


def listed_tag(code: str) -> str | None:
    """As `language_tag`, of languages that the table has."""
    return language_tag(code) if code.partition("_")[0] in _LISTED else None


def first_of_each(codes: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Tag → code, of several codes with one tag the first; what has no tag is left out."""
    found: dict[str, str] = {}
    for code, tag in codes:
        if tag is not None:
            found.setdefault(tag, code)
    return found

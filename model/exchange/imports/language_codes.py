"""Language codes of other programs as BCP-47 tags: ISO 639-3 with two letters where there are two.

Owns that table (ISO 639-3, with individual languages that stand for their macrolanguage) and the
scripts that Chinese is written in.
"""

from model.errors import InputError
from model.text.language import canonical_tag, lookup_tags

_TWO_LETTERS = (
    "aar aa abk ab afr af aka ak amh am ara ar arb ar arg an asm as ava av aym ay aze az azj az"
    " bak ba bam bm bel be ben bn bis bi bod bo bos bs bre br bul bg cat ca ces cs cha ch che ce"
    " chv cv cmn zh cor kw cos co cym cy dan da deu de div dv dzo dz ekk et ell el eng en epo eo"
    " est et eus eu ewe ee fao fo fas fa fij fj fin fi fra fr fry fy ful ff gla gd gle ga glg gl"
    " glv gv grn gn guj gu hat ht hau ha hbs sh heb he her hz hin hi hrv hr hun hu hye hy ibo ig"
    " ido io iku iu ile ie ina ia ind id ipk ik isl is ita it jav jv jpn ja kal kl kan kn kas ks"
    " kat ka kau kr kaz kk khk mn khm km kik ki kin rw kir ky kom kv kon kg kor ko kur ku lao lo"
    " lat la lav lv lim li lin ln lit lt ltz lb lug lg lvs lv mah mh mal ml mar mr mkd mk mlg mg"
    " mlt mt mon mn mri mi msa ms mya my nau na nav nv nde nd ndo ng nep ne nld nl nno nn nob nb"
    " nor no npi ne nya ny oci oc oji oj ori or orm om ory or oss os pan pa pes fa plt mg pli pi"
    " pol pl por pt pus ps que qu roh rm ron ro run rn rus ru sag sg san sa sin si slk sk slv sl"
    " sme se smo sm sna sn snd sd som so sot st spa es sqi sq srd sc srp sr ssw ss sun su swa sw"
    " swe sv swh sw tah ty tam ta tat tt tel te tgk tg tgl tl tha th tir ti ton to tsn tn tso ts"
    " tuk tk tur tr twi tw uig ug ukr uk urd ur uzb uz uzn uz ven ve vie vi vol vo wln wa wol wo"
    " xho xh yid yi yor yo zha za zho zh zsm ms zul zu"
)
_CODES = iter(_TWO_LETTERS.split())
_SHORT = dict(zip(_CODES, _CODES, strict=True))
_KNOWN = frozenset(_SHORT) | frozenset(_SHORT.values())


def language_tag(code: str) -> str | None:
    """The tag of a code such as `deu`, `cmn_Hans`, `pt_BR` or `en`; None if it is none.

    Chinese without a script is `zh-Hans`.
    """
    first, *rest = code.strip().replace("_", "-").split("-")
    try:
        tag = canonical_tag("-".join([_SHORT.get(first.lower(), first), *rest]))
    except InputError:
        return None
    return "zh-Hans" if tag == "zh" else lookup_tags(tag)[-1] if tag.startswith("zh-") else tag


def is_known_language(code: str) -> bool:
    """Whether a code without script and region is in the table."""
    return code in _KNOWN


def split_pair(name: str) -> tuple[str, str] | None:
    """The tags of a name such as `ende`, `deu-eng` or `enzh_hant`; None if it is none."""
    for separator in ("-", ""):
        for place in range(2, len(name) - 1):
            left, right = name[:place], name[place:]
            if separator and not right.startswith(separator):
                continue
            tags = _known_tag(left), _known_tag(right.removeprefix(separator))
            if tags[0] is not None and tags[1] is not None:
                return tags[0], tags[1]
    return None


def _known_tag(code: str) -> str | None:
    return language_tag(code) if is_known_language(code.partition("_")[0]) else None

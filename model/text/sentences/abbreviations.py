"""Words that a full stop may follow inside a sentence, by language.

Owns the lists and the order in which they are asked; where sentences end is
`model.text.sentences.segmenter`. Where a list cannot tell, the sentence goes on: a segment of two
sentences is translated well, half a sentence is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AbbreviationRules:
    """Abbreviations of one language; all words are lower case and without the last stop.

    Attributes:
        closed: Never end a sentence (titles, "e.g").
        before_number: Are abbreviations only when a digit follows ("no. 5").
        open: May end one, as may initials and acronyms; they do when one of `starters` follows.
        starters: Words that often begin a sentence and seldom go on with a name.
        has_ordinal_dot: A stop after one or two digits makes an ordinal ("3. Oktober").
    """

    closed: frozenset[str]
    before_number: frozenset[str]
    open: frozenset[str]
    starters: frozenset[str]
    has_ordinal_dot: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON_CLOSED = "dr prof mr mrs ms mme mlle st ste vs cf approx ca e.g i.e"
_COMMON_BEFORE_NUMBER = "no nos nr p pp vol fig art sec ch eq tab vgl v"
_COMMON_OPEN = "etc inc ltd co corp jr sr bros"

_ENGLISH = AbbreviationRules(
    closed=_words(
        f"{_COMMON_CLOSED} messrs gen col maj capt cmdr lt sgt adm gov sen rep rev hon pres fr"
        " mt ft viz resp incl excl esp dept univ assn gens lts figs eqs al v sens reps det"
    ),
    before_number=_words(
        f"{_COMMON_BEFORE_NUMBER} figs eqs chap par est jan feb mar apr jun jul aug sep sept oct"
        " nov dec"
    ),
    open=_words(f"{_COMMON_OPEN} a.m p.m ph.d m.d b.a m.a u.s u.k u.n u.s.a e.u d.c ave blvd rd"),
    starters=_words(
        "the a an it its he she they we i you this that these those there here in on at for from"
        " by as to of with but and or so if when while after before since then now however his"
        " her our their my your what who why how where not no yes one some many most all"
        " although because once under over both each every another such"
    ),
)
_GERMAN = AbbreviationRules(
    closed=_words(
        f"{_COMMON_CLOSED} hr hrn fr frl dipl ing bzw ggf evtl vgl d.h z.b z u.a o.ä s.o s.u u d"
        " inkl exkl zzgl sog bspw allg insb ges mio mrd i.d.r i v.a abs"
    ),
    before_number=_words(f"{_COMMON_BEFORE_NUMBER} s bd kap abb str tel nrn jh"),
    open=_words(f"{_COMMON_OPEN} usw usf str jh gmbh"),
    starters=_words(
        "der die das ein eine er sie es wir ihr ich du dies diese dieser dieses in im am an auf"
        " bei mit nach von vor zu für aber und oder wenn als weil doch dann da danach dort hier"
        " jetzt so auch nur nicht man was wer wie wo"
    ),
    has_ordinal_dot=True,
)
_FRENCH = AbbreviationRules(
    closed=_words(f"{_COMMON_CLOSED} m mm mgr me p.ex c.-à-d env av apr dir éd resp tél"),
    before_number=_words(f"{_COMMON_BEFORE_NUMBER} n t chap"),
    open=_words(f"{_COMMON_OPEN} av bd cie"),
    starters=_words(
        "le la les un une des il elle ils elles on nous vous je tu ce cet cette ces en dans sur"
        " pour par avec mais et ou si quand puis alors après avant ici là que qui c est son sa"
    ),
)
_SPANISH = AbbreviationRules(
    closed=_words(f"{_COMMON_CLOSED} sr sra srta sres d dña dra lic ing ud uds vd p.ej pág págs"),
    before_number=_words(f"{_COMMON_BEFORE_NUMBER} núm n cap tel"),
    open=_words(f"{_COMMON_OPEN} cía ee.uu av avda"),
    starters=_words(
        "el la los las un una él ella ellos en de por para con pero y o si cuando después antes"
        " este esta estos estas eso esto su sus no se lo al del como aquí allí yo tú nosotros"
    ),
)
_ITALIAN = AbbreviationRules(
    closed=_words(f"{_COMMON_CLOSED} sig sigg sig.ra dott dott.ssa avv ing arch on pag pagg es"),
    before_number=_words(f"{_COMMON_BEFORE_NUMBER} n cap tel"),
    open=_words(f"{_COMMON_OPEN} ecc spa s.p.a s.r.l"),
    starters=_words(
        "il lo la i gli le un una egli lui lei loro noi voi io tu questo questa in nel nella di"
        " da per con ma e o se quando poi dopo prima qui non si è"
    ),
)
_PORTUGUESE = AbbreviationRules(
    closed=_words(f"{_COMMON_CLOSED} sr sra srs dra d exmo prof.ª eng pág págs p.ex"),
    before_number=_words(f"{_COMMON_BEFORE_NUMBER} n nº cap tel"),
    open=_words(f"{_COMMON_OPEN} cia ltda av"),
    starters=_words(
        "o a os as um uma ele ela eles elas nós eu você este esta isso isto em no na de do da por"
        " para com mas e ou se quando depois antes aqui não"
    ),
)
_DUTCH = AbbreviationRules(
    closed=_words(f"{_COMMON_CLOSED} dhr mevr mw drs ir ing mr bijv d.w.z o.a m.b.t i.v.m t.o.v"),
    before_number=_words(f"{_COMMON_BEFORE_NUMBER} blz hfst tel"),
    open=_words(f"{_COMMON_OPEN} enz bv nv"),
    starters=_words(
        "de het een hij zij ze wij we ik jij je dit dat deze die in op bij met van voor naar maar"
        " en of als toen dan daarna hier daar niet er"
    ),
)
_RUSSIAN = AbbreviationRules(
    closed=_words("г гг т т.е т.к т.н им проф акад доц ул пр пл д др.-рус напр см ср св тов"),
    before_number=_words("рис табл стр с гл п пп тел тыс млн млрд"),
    open=_words("др пр т.д т.п руб коп н.э"),
    starters=_words(
        "он она они оно мы я ты вы это этот эта эти в на по за из от с со для но и а или если"
        " когда потом после до здесь там не как что его её их"
    ),
)
_OTHER = AbbreviationRules(
    closed=_words(_COMMON_CLOSED),
    before_number=_words(_COMMON_BEFORE_NUMBER),
    open=_words(_COMMON_OPEN),
    starters=frozenset(),
)
_OTHER_WITH_ORDINALS = AbbreviationRules(
    closed=_OTHER.closed,
    before_number=_OTHER.before_number,
    open=_OTHER.open,
    starters=_OTHER.starters,
    has_ordinal_dot=True,
)
_BY_LANGUAGE: Mapping[str, AbbreviationRules] = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "it": _ITALIAN,
    "pt": _PORTUGUESE,
    "nl": _DUTCH,
    "ru": _RUSSIAN,
    **dict.fromkeys(
        ("cs", "da", "et", "fi", "hr", "hu", "lv", "nb", "nn", "no", "pl", "sk", "sl", "tr"),
        _OTHER_WITH_ORDINALS,
    ),
}


def abbreviation_rules(language: str) -> AbbreviationRules:
    """The rules of a primary language (`en`), or those that hold for most."""
    return _BY_LANGUAGE.get(language, _OTHER)

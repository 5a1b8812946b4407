"""Language tokens of multilingual networks: how each family writes them, and where they stand.

Owns the forms (`deu_Latn`, `__de__`, `de_DE`, `>>deu<<`, `<2de>`), the BCP-47 tag that a token
means, and the directions that a network of such tokens has. Codes of languages are
`model.exchange.imports.languages`', the words of T5 `model.exchange.imports.t5_prompts`'. Imports
no torch.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from model.exchange.imports.languages import (
    first_of_each,
    flores_tag,
    language_tag,
    listed_tag,
    nearest_pairs,
)
from model.text.languages.tags import (
    Language,
    LanguagePair,
    all_pairs,
    canonical_tag,
    primary_language,
    without_usual_script,
)

Place = Literal["both sides", "source"]
"""A token of each side's own language before both, or the target's token before the source."""

_MBART_CODES = """
    ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV
    my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID
    ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA
    ur_PK xh_ZA gl_ES sl_SI
"""
MBART_CODES: tuple[str, ...] = tuple(_MBART_CODES.split())
"""Tokens of mBART-50, in the order of their ids."""

NLLB_LEGACY_PROBLEM = (
    "tokenizer_config.json: legacy_behaviour is true; its network learnt language tags behind"
    " sentences (`X </s> eng_Latn`), and only tags before them are known"
)
_WITHDRAWN: Mapping[str, str] = MappingProxyType({"in": "id", "iw": "he", "jw": "jv"})
"""Codes that ISO 639 does not have any more."""
_MADLAD_CODE = re.compile("[a-z]{2,3}(_[A-Z][a-z]{3})?(_[A-Z]{2})?")
_FROM_ENGLISH = re.compile(r"one-to-many|(?<![a-z])en-x(?![a-z])")
_INTO_ENGLISH = re.compile(r"many-to-one|(?<![a-z])x-en(?![a-z])")
_OPUS_CODES: Mapping[str, str] = MappingProxyType({"jap": "ja", "pob": "pt-BR"})
"""Codes that OPUS has of its own; in ISO 639-3 they are small languages of America."""
_OPUS_NAME = re.compile(r"opus-mt-(?:tc-(?:\w+-){1,2}?|tiny-)?([A-Za-z_+]+)-([A-Za-z_+]+)")
_REGIONAL = frozenset({"es_ar", "fr_be", "fr_ca", "nl_be", "pt_br", "zh_tw"})
"""Names of a language in a region whose code is that of another language, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFamily:
    """Family of networks that are told languages by tokens of one form.

    Attributes:
        title: For people.
        pattern: Of a token; its first group is the code.
        tag: The BCP-47 tag of a code; None where it has none.
        place: Where tokens stand.
        drops_usual_scripts: Whether codes name scripts that go without saying, which tags do not:
            `>>aze_Latn<<` is `az`, beside an `>>aze<<` `az-Latn`.
    """

    title: str
    pattern: re.Pattern[str]
    tag: Callable[[str], str | None]
    place: Place
    drops_usual_scripts: bool = False

    def __repr__(self) -> str:
        return f"<TokenFamily {self.title}>"

    def tokens(self, pieces: Iterable[str]) -> dict[str, str]:
        """BCP-47 tag → token; of several for one language that which names a script or region."""
        found = [(piece, match[1]) for piece in pieces if (match := self.pattern.fullmatch(piece))]
        precise = [(piece, code) for piece, code in found if "_" in code]
        tokens = first_of_each((piece, self.tag(code)) for piece, code in found) | first_of_each(
            (piece, self.tag(code)) for piece, code in precise
        )
        return without_usual_scripts(tokens) if self.drops_usual_scripts else tokens

    def languages(self, pieces: Iterable[str]) -> tuple[Language, ...]:
        """The languages of a vocabulary, with what asks for them."""
        return tuple(self.language(tag, token) for tag, token in self.tokens(pieces).items())

    def language(self, tag: str, token: str) -> Language:
        """One language, with what asks for it."""
        if self.place == "source":
            return Language(tag=tag, wanted_prefix=(token,))
        return Language(tag=tag, source_prefix=(token,), target_prefix=(token,))

    def asks(self, pair: LanguagePair) -> bool:
        """Whether a direction is asked for as the family is."""
        before, after = pair.source_prefix[-1:], pair.target_prefix
        tokens = (*before, *after) if self.place == "both sides" else before
        is_placed = len(after) == (self.place == "both sides") and bool(before)
        return is_placed and all(map(self.pattern.fullmatch, tokens))

    def untagged(self, pieces: Iterable[str]) -> tuple[str, ...]:
        """Tokens of this form that no BCP-47 tag stands for, or that say what another one says."""
        pieces = tuple(pieces)
        known = set(self.tokens(pieces).values())
        return tuple(
            piece for piece in pieces if self.pattern.fullmatch(piece) and piece not in known
        )


def mbart_tag(code: str) -> str | None:
    """The BCP-47 tag of one of mBART's codes: `en_XX` → `en`, `zh_CN` → `zh-Hans`."""
    if code not in MBART_CODES:
        return None
    return "zh-Hans" if code == "zh_CN" else code.partition("_")[0]


def _m2m100_tag(code: str) -> str | None:
    """Of codes of two or three letters; Northern Sotho has one that ISO 639 never had."""
    return language_tag({"ns": "nso"}.get(code, code))


def _madlad_tag(code: str) -> str | None:
    """Of codes that are nearly tags: `quy`, `zh_Hant`, `nan_Latn_TW`.

    Its vocabulary has tokens that name a script, a region or a task alone, too.
    """
    if _MADLAD_CODE.fullmatch(code) is None:
        return None
    if code == "zh":
        return "zh-Hans"
    return canonical_tag(_WITHDRAWN.get(code, code).replace("_", "-"))


def opus_tag(code: str) -> str | None:
    """As `language_tag`, of the codes of OPUS: `jap` and `pob` are Japanese and Brazilian there."""
    return _OPUS_CODES.get(code, language_tag(code))


def without_usual_scripts(codes: Mapping[str, str]) -> dict[str, str]:
    """Tag → code; no tag has a script that goes without saying, unless one without it is there.

    Chinese is always named with its script.
    """
    plain = {
        tag: tag if primary_language(tag) == "zh" else without_usual_script(tag) for tag in codes
    }
    return {tag if plain[tag] in codes else plain[tag]: code for tag, code in codes.items()}


FAMILIES: Mapping[str, TokenFamily] = MappingProxyType(
    {
        "nllb": TokenFamily(
            title="NLLB",
            pattern=re.compile("_{0,2}([a-z]{3}_[A-Z][a-z]{3})_{0,2}"),
            tag=flores_tag,
            place="both sides",
        ),
        "m2m100": TokenFamily(
            title="M2M100",
            pattern=re.compile("__([a-z]{2,3})__"),
            tag=_m2m100_tag,
            place="both sides",
        ),
        "small100": TokenFamily(
            title="SMaLL-100",
            pattern=re.compile("__([a-z]{2,3})__"),
            tag=_m2m100_tag,
            place="source",
        ),
        "mbart-50": TokenFamily(
            title="mBART-50",
            pattern=re.compile("([a-z]{2}_[A-Z]{2})"),
            tag=mbart_tag,
            place="both sides",
        ),
        "madlad": TokenFamily(
            title="MADLAD-400",
            pattern=re.compile("<2([A-Za-z_-]{0,40})>"),
            tag=_madlad_tag,
            place="source",
        ),
        "opus-mt": TokenFamily(
            title="OPUS-MT",
            pattern=re.compile(">>([^<>]{2,40})<<"),
            tag=opus_tag,
            place="source",
            drops_usual_scripts=True,
        ),
    }
)
"""By the names that `--family` gives them."""


def chosen_directions(
    languages: Sequence[Language], wanted: Sequence[tuple[str, str]], *, names: Iterable[str] = ()
) -> tuple[tuple[Language, ...], tuple[LanguagePair, ...], list[str]]:
    """All languages with all their pairs; or no languages, and the pairs that are wanted.

    Args:
        languages: Each of them is translated into each other.
        wanted: Source and target tags, or others that stand for them; empty for all.
        names: Of the model. Where one says that English is the only source or target
            (one-to-many, x-en), all others are left out; the first that says it counts.

    Returns:
        Languages, pairs, and what is in the way of those that are wanted.
    """
    known = {language.tag: language for language in languages}
    wanted = nearest_pairs(wanted, known, known)
    missing = {tag for pair in wanted for tag in pair} - known.keys()
    if missing:
        has = ", ".join(sorted(known))
        return (), (), [f"does not have {', '.join(sorted(missing))}; it has {has}"]
    if same := [source for source, target in wanted if source == target]:
        return (), (), [f"{same[0]} is asked for as source and target of one direction"]
    if wanted:
        tags = dict.fromkeys(tag for pair in wanted for tag in pair)
        chosen, places = all_pairs(known[tag] for tag in tags), set(wanted)
        return (), tuple(pair for pair in chosen if (pair.source, pair.target) in places), []
    pairs = all_pairs(languages)
    for name in map(str.lower, names):
        if _FROM_ENGLISH.search(name):
            return (), tuple(pair for pair in pairs if pair.source == "en"), []
        if _INTO_ENGLISH.search(name):
            return (), tuple(pair for pair in pairs if pair.target == "en"), []
    return tuple(languages), pairs, []


def opus_directions(
    pieces: Iterable[str], wanted: Sequence[tuple[str, str]]
) -> tuple[tuple[LanguagePair, ...], list[str]]:
    """Directions of an OPUS-MT model; one with tokens of several targets is told which.

    Args:
        pieces: Of its vocabulary, by id.
        wanted: Source and target tags; of a target with a token any tag that stands for it.

    Returns:
        The directions, and what is in the way.
    """
    tokens = FAMILIES["opus-mt"].tokens(pieces)
    wanted = nearest_pairs(wanted, (), tokens)
    missing = sorted({target for _, target in wanted} - tokens.keys()) if tokens else []
    if missing:
        has = ", ".join(sorted(tokens))
        return (), [f"has no token for the target {', '.join(missing)}; it has {has}"]
    pairs = tuple(
        LanguagePair(
            source=source,
            target=target,
            source_prefix=(tokens[target],) if target in tokens else (),
        )
        for source, target in wanted
    )
    return pairs, []


def opus_name_pairs(name: str, pieces: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Source and target tags that the name of an OPUS-MT model says; nothing where it says none."""
    match = _OPUS_NAME.fullmatch(name)
    return () if match is None else opus_pairs((match[1], match[2]), pieces)


def opus_pairs(codes: tuple[str, str], pieces: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Tags of a model whose source and target have these codes, each of one language or several.

    All targets that have tokens; without tokens a model cannot be asked for one of several.
    """
    sources, named = map(opus_tags, codes)
    targets = tuple(FAMILIES["opus-mt"].tokens(pieces)) or (named if len(named) == 1 else ())
    return tuple((source, target) for source in sources for target in targets if source != target)


def opus_tags(code: str) -> tuple[str, ...]:
    """Tags of the languages that one side of a name says: `cat_oci_spa` → `ca`, `oc`, `es`.

    Nothing where a part is none: a family of languages, or a word.
    """
    found = [_joined_tags(part) for part in code.split("+")]
    return tuple(dict.fromkeys(tag for tags in found for tag in tags)) if all(found) else ()


def _joined_tags(code: str) -> tuple[str, ...]:
    """Of one code with a script or region, or of several codes with `_` between them."""
    parts = code.split("_")
    is_list = code not in _REGIONAL and all(
        part.islower() and (listed_tag(part) if len(part) == 2 else len(part) == 3)
        for part in parts
    )
    tags = [opus_tag(part) for part in (parts if is_list else [code])]
    return () if None in tags else tuple(filter(None, tags))

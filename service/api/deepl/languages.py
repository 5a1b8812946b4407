"""Languages as DeepL spells them: upper case, sources without a region, some targets with one.

Owns that spelling, both ways, and the lists of it. Which of a server's languages a tag may mean is
`service.api.languages`.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from model.errors import InputError
from model.text.languages.tags import canonical_tag, primary_language
from service.api.languages import NO_ALIASES, find_tags, language_name
from service.models.routes.pivot import reachable
from service.models.routes.routing import RoutingTable

_TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "en": ("EN-GB", "EN-US"),
        "no": ("NB",),
        "pt": ("PT-BR", "PT-PT"),
        "zh-Hans": ("ZH", "ZH-HANS"),
    }
)
"""Target codes of languages that have others than their tag: clients refuse EN and PT."""

_SOURCES: Mapping[str, str] = MappingProxyType({"no": "NB"})

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "EN-GB": "English (British)",
        "EN-US": "English (American)",
        "NB": "Norwegian (bokmål)",
        "PT-BR": "Portuguese (Brazilian)",
        "PT-PT": "Portuguese (European)",
        "ZH": "Chinese",
        "ZH-HANS": "Chinese (simplified)",
        "ZH-HANT": "Chinese (traditional)",
    }
)


def source_code(tag: str) -> str:
    """The source code of a language: `zh-Hans` → `ZH`."""
    primary = primary_language(tag)
    return _SOURCES.get(primary, primary.upper())


def base_code(tag: str) -> str:
    """The code of a language in glossaries, where regions and scripts are one: `zh-Hant` → `zh`."""
    return source_code(tag).lower()


def target_codes(tag: str) -> tuple[str, ...]:
    """The target codes of a language: `de` → `DE`; `en` → `EN-GB`, `EN-US`."""
    return _TARGETS.get(tag, (tag.upper(),))


def find_source(code: str, known: Collection[str]) -> str | None:
    """A tag or code for what a source code means, None if that is not loaded.

    Of a language that is loaded only with a region or a script, the code without one means it.
    """
    return _find(code, [tag for tag in known if source_code(tag) == code.upper()], known)


def find_target(code: str, known: Collection[str]) -> str | None:
    """A tag or code for what a target code means, None if that is not loaded.

    Of a language that is loaded only with a region, the code without one means it; a script is
    never guessed.
    """
    return _find(code, [tag for tag in known if _is_region_of(tag, code)], known)


def _find(code: str, wider: list[str], known: Collection[str]) -> str | None:
    try:
        if find_tags(code, NO_ALIASES, known):
            return code
    except InputError:
        return None
    return wider[0] if wider else None


def _is_region_of(tag: str, code: str) -> bool:
    """Whether a tag is the language `code` in a region: `pt-BR`, but not `zh-Hant`."""
    primary, _, rest = tag.partition("-")
    return primary.upper() == code.upper() and len(rest) in {2, 3}


def all_source_codes(table: RoutingTable) -> tuple[str, ...]:
    """The source codes of what is served, in order."""
    return tuple(sorted({source_code(tag) for tag in table.all.all_sources}))


def all_target_codes(table: RoutingTable) -> tuple[str, ...]:
    """The target codes of what is served, in order."""
    directions = table.all
    targets = {tag for source in directions.all_sources for tag in directions.targets(source)}
    return tuple(sorted({code for tag in targets for code in target_codes(tag)}))


class LanguageLists:
    """Lists of the loaded languages, made once for what is loaded: they may be long."""

    def __init__(self) -> None:
        self._table: RoutingTable | None = None
        self.sources: tuple[str, ...] = ()
        self.targets: tuple[str, ...] = ()
        self.pairs: dict[tuple[str, str], None] = {}

    def of(self, table: RoutingTable) -> "LanguageLists":
        """Itself, with the source and target codes of a table, each in order.

        `pairs` are the languages that a dictionary can be for, as base codes.
        """
        if table is not self._table:
            self.sources = all_source_codes(table)
            self.targets = all_target_codes(table)
            self.pairs = dict.fromkeys(sorted(_base_pairs(table)))
            self._table = table
        return self


def _base_pairs(table: RoutingTable) -> set[tuple[str, str]]:
    bases = {tag: base_code(tag) for tag in table.all.languages}
    return {
        (bases[source], bases[target])
        for source in table.all.all_sources
        for target in reachable(table, source)
        if bases[source] != bases[target]
    }


def code_name(code: str) -> str:
    """English name of a code."""
    return _NAMES.get(code) or language_name(canonical_tag(code))

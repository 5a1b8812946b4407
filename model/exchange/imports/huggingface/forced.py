"""The language that a folder forces (`forced_bos_token_id`): its only target.

Owns what that leaves of the directions, and how it is told. Which language a token stands for is
the family's.
"""

from collections.abc import Iterable

from model.exchange.imports.huggingface.folder import HuggingFaceFolder
from model.exchange.imports.problems import NAME_DIRECTIONS
from model.text.languages.tags import Language, LanguagePair

Directions = tuple[tuple[Language, ...], tuple[LanguagePair, ...], tuple[str, ...]]
"""Languages where each is translated into each other, directions, notes for the card."""


def forced_language(
    folder: HuggingFaceFolder, languages: Iterable[tuple[int, Language]]
) -> Language | None:
    """The one of these, with the ids of their tokens, that the folder forces; None: none of them.

    Args:
        folder: With its search.
        languages: Of the vocabulary.
    """
    forced = folder.forced_first
    if type(forced) is not int:
        return None
    return next((language for index, language in languages if index == forced), None)


def into_forced(
    folder: HuggingFaceFolder,
    languages: tuple[Language, ...],
    pairs: tuple[LanguagePair, ...],
    forced: Language | None,
) -> Directions:
    """The directions into a language alone; a problem of the folder where its name leaves none.

    Args:
        folder: Whose name may have left some out.
        languages: Where each is translated into each other.
        pairs: All that the name leaves.
        forced: None leaves everything as it is.
    """
    if forced is None:
        return languages, pairs, ()
    kept = tuple(pair for pair in pairs if pair.target_prefix == forced.target_prefix)
    if pairs and not kept:
        folder.problems.append(
            f"forced_bos_token_id forces {forced.tag}, into which its name"
            f" ({' or '.join(folder.names)}) leaves no direction; {NAME_DIRECTIONS}"
        )
    note = (
        f"It forces {forced.tag} (forced_bos_token_id), its only target; a conversion that names"
        " directions has others."
    )
    return (), kept, (note,)

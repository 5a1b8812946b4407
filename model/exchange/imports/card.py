"""Card of a converted model: its origin, its licence, its differences from its own program.

Owns the text of card.md.
"""

from collections.abc import Iterator

from model.checkpoint.manifest import Manifest
from model.exchange.imports.imported import ImportedModel

UNKNOWN_LICENCE = "LicenseRef-unknown"
"""Written where neither the source nor a person says what the licence is."""

_MAX_LANGUAGES = 300


def format_card(imported: ImportedModel, manifest: Manifest, *, command: str | None) -> str:
    """The page, in Markdown.

    Args:
        imported: What was converted.
        manifest: Of the checkpoint.
        command: What was typed; None leaves it out.
    """
    sections = [
        f"# {manifest.name}",
        manifest.description,
        f"Network of the family {imported.family}, converted from {imported.format}'s format.",
        _licence(manifest),
        _languages(manifest),
    ]
    if imported.notes:
        notes = "\n".join(f"- {note}" for note in imported.notes)
        sections.append(f"## What differs from the original program\n\n{notes}")
    if command is not None:
        sections.append(f"## How it was made\n\n```\n{command}\n```")
    return "\n\n".join(filter(None, sections)) + "\n"


def _licence(manifest: Manifest) -> str:
    if manifest.licence == UNKNOWN_LICENCE:
        text = (
            "The files that were converted do not say under which licence the weights are. Whoever"
            " uses them has to find out."
        )
    else:
        text = f"The weights are under {manifest.licence}."
    others = [f"- {each.corpus}: {each.licence}" for each in manifest.licences]
    return "\n\n".join(["## Licence", text, *(["\n".join(others)] if others else [])])


def _languages(manifest: Manifest) -> str:
    sources = list(dict.fromkeys(pair.source for pair in manifest.pairs))
    targets = list(dict.fromkeys(pair.target for pair in manifest.pairs))
    if len(manifest.pairs) == 1:
        text = f"From {sources[0]} to {targets[0]}."
    else:
        text = "\n\n".join(_listed("From", sources)) + "\n\n" + "\n\n".join(_listed("To", targets))
    return f"## Languages\n\n{text}"


def _listed(word: str, tags: list[str]) -> Iterator[str]:
    more = f" and {len(tags) - _MAX_LANGUAGES} more" if len(tags) > _MAX_LANGUAGES else ""
    yield f"{word}: {', '.join(tags[:_MAX_LANGUAGES])}{more}."

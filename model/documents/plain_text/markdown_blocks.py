"""Blocks of Markdown, as CommonMark and tables of GitHub have them.

Owns the parser. What of a block is text, and what stands around it, is
`model.documents.plain_text.markdown`.
"""

from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from model.documents.plain_text.markdown_codes import IsDefined


def blocks_of(text: str) -> tuple[list[Token], IsDefined]:
    """The tokens of all blocks, in order, and which labels of links are defined."""
    noted: dict[str, Any] = {}
    tokens = _parser().parse(text, noted)
    labels = frozenset(noted.get("references", ()))
    return tokens, lambda label: bool(labels) and normalizeReference(label) in labels


def _parser() -> MarkdownIt:
    """A parser of blocks, which leaves lines as they are."""
    parser = MarkdownIt("commonmark", {"maxNesting": 50}).enable("table")
    return parser.disable(["inline", "text_join"])

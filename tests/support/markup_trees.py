"""What has to be the same of a page and its translation, as another parser reads both: libxml2."""

from collections.abc import Iterator

import lxml.html
from lxml.html import HtmlElement

from model.documents.markup.html_elements import BLOCK_ELEMENTS, UNTOUCHED_ELEMENTS

READABLE = {"alt", "title", "placeholder"}

Tree = tuple[str, tuple[tuple[str, str], ...], tuple["Tree", ...], str]


def tree_of(page: str) -> Tree:
    """Names, attributes that are no text, and what is inside; neighbours in no order.

    Elements that are not for translation have their text in it.
    """
    return _tree(_root(page))


def outline_of(page: str) -> list[str]:
    """What ends a sentence, in its order."""
    return list(_outline(_root(page)))


def text_of(page: str) -> str:
    """All text, what is not for translation left out."""
    return "".join(_texts(_root(page)))


def _root(page: str) -> HtmlElement:
    return lxml.html.document_fromstring(f"<html><body><div>{page}</div></body></html>")


def _name(element: HtmlElement) -> str:
    return element.tag if isinstance(element.tag, str) else str(element)


def _is_untouched(element: HtmlElement) -> bool:
    return (
        not isinstance(element.tag, str)
        or element.tag in UNTOUCHED_ELEMENTS
        or element.get("translate") == "no"
        or "notranslate" in (element.get("class") or "").split()
    )


def _tree(element: HtmlElement) -> Tree:
    attributes = tuple(sorted((k, v) for k, v in element.attrib.items() if k not in READABLE))
    children = tuple(sorted(map(_tree, element), key=repr))
    is_untouched = _is_untouched(element)
    text = lxml.html.tostring(element, encoding="unicode", with_tail=False) if is_untouched else ""
    return _name(element), attributes, children, text


def _outline(element: HtmlElement) -> Iterator[str]:
    if _name(element) in BLOCK_ELEMENTS:
        yield _name(element)
    for child in element:
        yield from _outline(child)


def _texts(element: HtmlElement) -> Iterator[str]:
    if not _is_untouched(element):
        yield element.text or ""
        for child in element:
            yield from _texts(child)
            yield child.tail or ""

"""Runs of a paragraph of Office Open XML as tokens: formatting and links are pairs around words.

Owns what becomes a pair. Most of a paragraph's text has one formatting, its base; a stretch of
another one, and an element that holds runs, such as a link, is an opening and a closing code with
the words between. So a pair may change places as a whole: a translation has a run of its own for
each stretch of text, with the properties of what the stretch is in. What else stands between runs
or in them is a code of its own; formulas, and fields of a slide, are words.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from model.documents.archives.nodes import Element, Item, Node, Run, events_of, has_text
from model.documents.archives.runs import (
    NotNestedError,
    Stretch,
    is_apart,
    is_range,
    nested,
)
from model.documents.markup.xml_events import Event
from model.documents.notation.assembly import SPACES, RunPart, Token
from model.documents.notation.template import Frame, Piece

Notation = Callable[[Sequence[Event]], tuple[Piece, ...]]

_MOST_STRETCHES = 4_000
"""Of one text, which all are in memory together."""


def run_tokens(
    stretches: Sequence[Stretch],
    begun: Run | None,
    notation: Notation,
    meant: Callable[[str], str],
) -> list[Token] | None:
    """What stands between two borders, as tokens.

    Args:
        stretches: In order.
        begun: The run that the first of them is in.
        notation: From events to what stands for them, with places for texts in tags.
        meant: From the characters of a text to what the format means by them.

    Returns:
        None if it has neither pairs nor words that are no text, or its elements do not nest.
    """
    if len(stretches) > _MOST_STRETCHES or not any(is_text for _, is_text in stretches):
        return None
    try:
        nodes = nested(stretches, begun)
    except NotNestedError:
        return None
    return _Writer(notation, meant).tokens(nodes)


class _Writer:
    def __init__(self, notation: Notation, meant: Callable[[str], str]) -> None:
        self._notation = notation
        self._meant = meant
        self._begins: dict[Run, tuple[Piece, ...]] = {}

    def tokens(self, nodes: Sequence[Node]) -> list[Token] | None:
        """Tokens of a paragraph, in a pair that says what is around its text."""
        grouped = _grouped(nodes)
        if not any(isinstance(one, Element) or _needs_runs(one) for one in grouped):
            return None
        if not any(map(has_text, nodes)):  # all of it is a field that is computed
            return [Token(kind="border", pieces=self._notation(events_of(nodes)))]
        return self._element(Element(opening=[], inner=list(nodes)), _any_text(nodes))

    def _element(self, element: Element, any_text: Item) -> list[Token]:
        """An element with its tags.

        Args:
            element: It.
            any_text: A text as whose run those are that are in it, where it has none itself.
        """
        base = _base(element.inner)
        frame = self._whole(base) if base is not None else self._bare(any_text)
        # The empty string stands for the name of a tag: whether tags match is known here.
        begin = Token(kind="opening", pieces=("", *self._notation(element.opening)), frame=frame)
        tokens = [begin]
        waiting: list[Item] = []
        for node in _grouped(element.inner):
            if isinstance(node, Item) and node.kind not in ("text", "word"):
                waiting.append(node)
                continue
            tokens += self._beside(waiting)
            waiting = []
            if isinstance(node, Element):
                inner = self._element(node, any_text)
                tokens += inner if node.opening else _without_spaces(inner)
            else:
                tokens += self._texts(node) if node.kind == "text" else [self._word(node)]
        tokens += self._beside(waiting)
        return [*tokens, Token(kind="closing", pieces=("", *self._notation(element.closing)))]

    def _texts(self, item: Item) -> Iterator[Token]:
        """A text, and the white space before and behind it, which may be left where it is."""
        begin, said, end = item.events
        before, after = self._edges(item)
        first, last = self._joint(item, item)
        whole = self._whole(item)
        stretches = _spaces_apart(said.raw, self._meant(said.text))
        for place, (raw, text) in enumerate(stretches):
            is_first, is_last = place == 0, place == len(stretches) - 1
            part = RunPart(
                around=(
                    (*before, begin.raw) if is_first else (),
                    (end.raw, *after) if is_last else (),
                ),
                whole=whole,
                joint=(first if is_first else whole.end, last if is_last else whole.begin),
            )
            yield Token(kind="text", pieces=(raw,), text=text, part=part)

    def _word(self, item: Item) -> Token:
        return Token(kind="word", pieces=self._notation(item.events))

    def _beside(self, items: Sequence[Item]) -> list[Token]:
        """What is no text, between two texts, as one code: nothing comes between its parts."""
        if not items:
            return []
        original: list[Piece] = []
        whole: list[Piece] = []
        for item in items:
            pieces = self._notation(item.events)
            before, after = self._edges(item)
            original += [*before, *pieces, *after]
            if item.run is not None:
                begin, end = self._begin(item.run), item.run.closing
                pieces = (*begin, *pieces, end)
            whole += pieces
        part = RunPart(instead=tuple(whole), joint=self._joint(items[0], items[-1]))
        is_removable = all(item.is_removable for item in items)
        token = Token(
            kind="lone",
            pieces=tuple(original),
            is_removable=is_removable,
            is_apart=any(is_apart(item.events) for item in items),
            part=part,
        )
        return [token]

    def _edges(self, item: Item) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        """What of its run begins right before an item, and ends right behind it."""
        if item.run is None:
            return (), ()
        begin = self._begin(item.run) if item.is_first else ()
        return begin, (item.run.closing,) if item.is_last else ()

    def _joint(self, first: Item, last: Item) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
        before = (first.run.closing,) if first.run is not None and not first.is_first else ()
        after = self._begin(last.run) if last.run is not None and not last.is_last else ()
        return before, after

    def _whole(self, item: Item) -> Frame:
        run = _run_of(item)
        begin, end = _tags(item)
        return Frame(begin=(*self._begin(run), begin), end=(end, run.closing))

    def _bare(self, item: Item) -> Frame:
        """A run without properties."""
        run = _run_of(item)
        begin, end = _tags(item)
        return Frame(begin=(f"<{run.name}>", begin), end=(end, run.closing))

    def _begin(self, run: Run) -> tuple[Piece, ...]:
        if run not in self._begins:
            self._begins[run] = self._notation(run.begin)
        return self._begins[run]


def _needs_runs(item: Item) -> bool:
    """Whether it is a word, or text that is written as a tag, which no other text can be."""
    return item.kind == "word" or (item.kind == "text" and not item.events[0].raw)


def _tags(text: Item) -> tuple[str, str]:
    """The tags around a translation of a text; one that is a tag itself gets those of others."""
    begin, _, end = text.events
    if begin.raw:
        return begin.raw, end.raw
    return f'<{begin.name} xml:space="preserve">', f"</{begin.name}>"


def _grouped(nodes: Sequence[Node]) -> list[Node]:
    """Nodes whose stretches of another formatting than most are elements without tags."""
    base = _base(nodes)
    if base is None:
        return list(nodes)
    usual = _run_of(base).formatting
    found: list[Node] = []
    group: list[Node] = []
    waiting: list[Node] = []  # what belongs to the group if it goes on
    own = usual

    def end_group() -> None:
        nonlocal group, waiting, own
        found.extend([Element(opening=[], inner=group), *waiting] if group else waiting)
        group, waiting, own = [], [], usual

    for node in nodes:
        formatting = _formatting(node)
        if group and formatting in (own, None) and _is_in_runs(node):
            waiting.append(node)
            if isinstance(node, Item) and node.kind == "text":
                group += waiting
                waiting = []
            continue
        end_group()
        if isinstance(node, Item) and node.kind == "text" and formatting != usual and _is_set(node):
            group, own = [node], formatting or ""
        else:
            found.append(node)
    end_group()
    return found


def _base(nodes: Sequence[Node]) -> Item | None:
    """A text of the formatting that most of the text has which is directly there."""
    texts = [node for node in nodes if isinstance(node, Item) and node.kind == "text"]
    lengths: Counter[str] = Counter()
    for text in texts:
        lengths[_run_of(text).formatting] += len(text.events[1].text.strip())
    if not texts:
        return None
    usual = lengths.most_common(1)[0][0]
    return next(text for text in texts if _run_of(text).formatting == usual)


def _formatting(node: Node) -> str | None:
    return node.run.formatting if isinstance(node, Item) and node.run is not None else None


def _is_in_runs(node: Node) -> bool:
    """Whether it may stand in a stretch of one formatting."""
    if isinstance(node, Element):
        return False
    return node.is_removable or (node.run is not None and not is_range(node.events))


def _is_set(text: Item) -> bool:
    """Whether its formatting is seen: a single space has that of the words around it."""
    said = text.events[1].text
    return bool(said.strip()) or len(said) > 1


def _spaces_apart(raw: str, text: str) -> list[tuple[str, str]]:
    """A text as it is written and as it is meant, with its outer white space apart."""
    core = raw.strip(SPACES)
    first = raw.index(core)
    last = len(raw) - first - len(core)
    end = len(text) - last
    if not core or text[:first] != raw[:first] or text[end:] != raw[len(raw) - last :]:
        return [(raw, text)]
    parts = [(raw[:first],) * 2, (core, text[first:end]), (text[end:],) * 2]
    return [(written, said) for written, said in parts if written]


def _without_spaces(tokens: list[Token]) -> list[Token]:
    """A pair without the white space at its edges, which stands beside it."""
    texts = [place for place, token in enumerate(tokens) if token.text.strip(SPACES)]
    if not texts:
        return tokens
    first, last = 1, len(tokens) - 2
    while first < texts[0] and tokens[first].kind == "text":
        first += 1
    while last > texts[-1] and tokens[last].kind == "text":
        last -= 1
    inner = tokens[first : last + 1]
    return [*tokens[1:first], tokens[0], *inner, tokens[-1], *tokens[last + 1 : -1]]


def _any_text(nodes: Sequence[Node]) -> Item:
    inner = (
        [_any_text(node.inner)] if isinstance(node, Element) else [node]
        for node in nodes
        if isinstance(node, Element) or node.kind == "text"
    )
    return next(chain.from_iterable(inner))


def _run_of(item: Item) -> Run:
    if item.run is None:
        raise ValueError("a text that is in no run")
    return item.run

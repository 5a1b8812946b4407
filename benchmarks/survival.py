"""`python -m benchmarks.survival`: what of realistic texts comes through a running server.

Sends the texts of survival_texts.txt (mails, release notes, Markdown, subtitles, chats, strings of
interfaces, markup, capitals, lists, long lines, mixed scripts) to `/v1/translate`, English ones
into German and Chinese, others into English. What has to survive is marked in the file by hand, and
so known without the rules that are judged: ⟦as it is⟧, ⟪by its digits⟫. Each such item is kept, or
the segment that it is in is flagged (`quality`), or it is lost and nobody says so; where the same
stands in several segments, it is kept in those that have it in their translation. Prints shares by
direction and by kind of text, names all that is lost, and writes
benchmarks/results/survival-<time>.json. Leaves with 1 if less than the mark is kept or flagged.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.digits import has_number
from benchmarks.load import Client
from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from benchmarks.served import serving

TEXTS = Path(__file__).with_name("survival_texts.txt")
MIN_SHARE = 0.995
"""Of the items that are kept or flagged."""
_TARGETS = {"en": ("de", "zh-Hans"), "de": ("en",), "zh": ("en",)}
_HEADING = re.compile(r"^=== ([^|\n]+) \| (\w+) \| ([^|\n]+)\n", re.MULTILINE)
_ITEM = re.compile(r"⟦([^⟧]+)⟧|⟪([^⟫]+)⟫")
_WORD_SIZE = 4  # characters of an item below which it may be part of something else

Fate = Literal["kept", "flagged", "lost"]
_Segment: TypeAlias = Mapping[str, Any]
"""Of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What has to survive at a place of a text.

    Attributes:
        item: Its characters.
        begin: Where it is in what is sent.
        is_number: It comes with the same digits, and not as it is.
    """

    item: str
    begin: int
    is_number: bool = False

    @property
    def end(self) -> int:
        """Behind it."""
        return self.begin + len(self.item)

    def comes_through(self, source: str, target: str) -> bool:
        """Whether it is in a target as in its source."""
        judge = has_number if self.is_number else comes_through
        return judge(self.item, source, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text, and what of it has to survive.

    Attributes:
        name: Of the text.
        language: Its language.
        kind: What sort of text it is.
        plain: What is sent.
        items: What of it has to survive, in its order, one entry each time.
    """

    name: str
    language: str
    kind: str
    plain: str
    items: tuple[Marked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What became of an item in one direction."""

    text: str
    direction: str
    kind: str
    item: str
    fate: Fate


def read_texts(content: str) -> Iterator[Text]:
    """The texts of a file: a line `=== name | language | kind`, then the text with its items."""
    _, *parts = _HEADING.split(content)
    for name, language, kind, marked in zip(*[iter(parts)] * 4, strict=True):
        plain, items = _unmarked(marked.strip("\n"))
        yield Text(
            name=name.strip(), language=language, kind=kind.strip(), plain=plain, items=items
        )


def _unmarked(marked: str) -> tuple[str, tuple[Marked, ...]]:
    """A text without the brackets of its items, and these."""
    plain, items, done = "", [], 0
    for found in _ITEM.finditer(marked):
        plain += marked[done : found.start()]
        item = found[1] or found[2]
        items.append(Marked(item=item, begin=len(plain), is_number=found[1] is None))
        plain, done = plain + item, found.end()
    return plain + marked[done:], tuple(items)


def fates(text: Text, translation: Mapping[str, Any], direction: str) -> Iterator[Item]:
    """What became of every item.

    Args:
        text: What was sent.
        translation: Of the reply, with its segments.
        direction: From and to where.
    """
    places = list(_places(text, translation["segments"]))
    for marked in text.items:
        own = [one for begin, one in places if _is_in(marked, begin, one["source"])]
        fate: Fate = "lost"
        if _is_kept(marked, text, translation, own):
            fate = "kept"
        elif any(one["quality"]["failed"] for one in own):
            fate = "flagged"
        yield Item(text=text.name, direction=direction, kind=text.kind, item=marked.item, fate=fate)


def _places(text: Text, segments: Iterable[_Segment]) -> Iterator[tuple[int, _Segment]]:
    """Where each segment begins in its text.

    Raises:
        ValueError: The text has no such segment behind the one before.
    """
    end = 0
    for segment in segments:
        begin = text.plain.index(segment["source"], end)
        end = begin + len(segment["source"])
        yield begin, segment


def _is_in(marked: Marked, begin: int, source: str) -> bool:
    """Whether a segment that begins there has an item, or a part of it."""
    return begin < marked.end and marked.begin < begin + len(source)


def _is_kept(
    marked: Marked, text: Text, translation: Mapping[str, Any], own: Sequence[_Segment]
) -> bool:
    """Whether an item comes through.

    If the text and its translation do not have it equally often, its own segments have it and
    another one that should does not.
    """
    if marked.comes_through(text.plain, translation["text"]):
        return True
    source, target = (" ".join(one[side] for one in own) for side in ("source", "text"))
    if marked.item not in source or not marked.comes_through(source, target):
        return False
    return any(
        marked.item in one["source"] and not marked.comes_through(one["source"], one["text"])
        for one in translation["segments"]
    )


def comes_through(item: str, source: str, target: str) -> bool:
    """Whether an item is as often in the target as in its source, or oftener if it is short."""
    there, here = source.count(item), target.count(item)
    return here == there if len(item) >= _WORD_SIZE else here >= there


async def measure(url: str, texts: Sequence[Text]) -> list[Item]:
    """The fate of every item in every direction; one text after another."""
    client = Client(url)
    items: list[Item] = []
    for text in texts:
        for target in _TARGETS[text.language]:
            translation = await _translated(client, text, target)
            items += fates(text, translation, f"{text.language}-{target}")
    await client.close()
    return items


async def _translated(client: Client, text: Text, target: str) -> dict[str, Any]:
    values = {"texts": text.plain, "source": text.language, "target": target}
    body = json.dumps(values).encode()
    head = (
        f"POST /v1/translate HTTP/1.1\r\nhost: {client.host}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    status, content = await client.exchange(head.encode() + body)
    if status != 200:
        raise SystemExit(f"{text.name} into {target}: {status} {content.decode()}")
    translation: dict[str, Any] = json.loads(content)["translations"][0]
    return translation


def table(items: Sequence[Item]) -> str:
    """Kept, flagged and lost by direction, in Markdown."""
    lines = ["| direction | items | kept | flagged | lost |", "|---|---:|---:|---:|---:|"]
    for direction in [*dict.fromkeys(one.direction for one in items), "all"]:
        own = Counter(one.fate for one in items if direction in (one.direction, "all"))
        counts = (own.total(), own["kept"], own["flagged"], own["lost"])
        lines.append(f"| {direction} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCounts:
    """How many items texts of a kind have in a direction, and what became of them."""

    direction: str
    kind: str
    items: int
    kept: int
    flagged: int
    lost: int


def kinds(items: Sequence[Item]) -> list[KindCounts]:
    """Counts of every kind of text in every direction."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for one in items:
        counts.setdefault((one.direction, one.kind), Counter())[one.fate] += 1
    return [
        KindCounts(
            direction=direction,
            kind=kind,
            items=own.total(),
            kept=own["kept"],
            flagged=own["flagged"],
            lost=own["lost"],
        )
        for (direction, kind), own in sorted(counts.items())
    ]


def kinds_table(items: Sequence[Item]) -> str:
    """The same in Markdown."""
    lines = [
        "| direction | kind of text | items | kept | flagged | lost |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [f"| {' | '.join(map(str, asdict(one).values()))} |" for one in kinds(items)]
    return "\n".join(lines)


def share(items: Iterable[Item]) -> float:
    """Of the items, how much is kept or flagged."""
    fates_of = Counter(one.fate for one in items)
    return 1 - fates_of["lost"] / max(fates_of.total(), 1)


def parse_arguments() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="a server that is already running, on loopback")
    parser.add_argument("--checkpoint", help="checkpoint to serve (the bundled ones)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="cpu")
    parser.add_argument("--texts", type=Path, default=TEXTS, help="what to send")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> int:
    """Measure, write, judge."""
    arguments = parse_arguments()
    started = datetime.now(UTC)
    texts = list(read_texts(arguments.texts.read_text(encoding="utf-8")))
    with serving(arguments) as url:
        items = asyncio.run(measure(url, texts))
    report = {
        "benchmark": "survival",
        "command": describe_command("benchmarks.survival", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "num_texts": len(texts),
        "share": round(share(items), 4),
        "rows": [asdict(one) for one in items if one.fate != "kept"],
        "kinds": [asdict(one) for one in kinds(items)],
        "table": table(items),
    }
    path = write_result(arguments.results, "survival", started, report)
    for one in items:
        if one.fate == "lost":
            print(f"lost: {one.text}, {one.direction}: {one.item!r}")
    print(f"\n{kinds_table(items)}")
    print(f"\n{table(items)}\n\n{share(items):.2%} kept or flagged; {path}")
    return 0 if share(items) >= MIN_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())

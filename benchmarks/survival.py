"""`python -m benchmarks.survival`: what of realistic texts comes through a running server.

Sends the texts of survival_texts.txt (mails, release notes, Markdown, subtitles, chats, strings of
interfaces, markup, capitals, lists, long lines, mixed scripts) to `/v1/translate`, English ones
into German and Chinese, others into English. What has to survive is marked in the file by hand, and
so known without the rules that are judged: ⟦as it is⟧, ⟪by its digits⟫. Each such item is kept, or
the segment that it is in is flagged (`quality`), or it is lost and nobody says so. Prints shares by
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
from typing import Any, Literal

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
_DIGITS = re.compile(r"\d+")
_WORD_SIZE = 4  # characters of an item below which it may be part of something else

Fate = Literal["kept", "flagged", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text, and what of it has to survive.

    Attributes:
        name: Of the text.
        language: Its language.
        kind: What sort of text it is.
        plain: What is sent.
        exact: Items that come as they are, one entry each time.
        numbers: Items that come with the same digits.
    """

    name: str
    language: str
    kind: str
    plain: str
    exact: tuple[str, ...]
    numbers: tuple[str, ...]


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
        items = _ITEM.findall(marked)
        yield Text(
            name=name.strip(),
            language=language,
            kind=kind.strip(),
            plain=_ITEM.sub(lambda item: item[1] or item[2], marked).strip("\n"),
            exact=tuple(exact for exact, _ in items if exact),
            numbers=tuple(number for _, number in items if number),
        )


def fates(text: Text, translation: Mapping[str, Any], direction: str) -> Iterator[Item]:
    """What became of every item.

    Args:
        text: What was sent.
        translation: Of the reply, with its segments.
        direction: From and to where.
    """
    flagged = [one["source"] for one in translation["segments"] if one["quality"]["failed"]]
    digits = [digit for source in flagged for digit in _DIGITS.findall(source)]
    for item in text.exact:
        is_kept = comes_through(item, text.plain, translation["text"])
        is_flagged = any(item in source or source in item for source in flagged)
        yield _item(text, direction, item, is_kept=is_kept, is_flagged=is_flagged)
    for item in text.numbers:
        is_kept = has_number(item, text.plain, translation["text"])
        is_flagged = all(digit in digits for digit in _DIGITS.findall(item))
        yield _item(text, direction, item, is_kept=is_kept, is_flagged=is_flagged)


def _item(text: Text, direction: str, item: str, *, is_kept: bool, is_flagged: bool) -> Item:
    fate: Fate = "kept" if is_kept else "flagged" if is_flagged else "lost"
    return Item(text=text.name, direction=direction, kind=text.kind, item=item, fate=fate)


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

"""`python -m benchmarks.first_words PHRASES`: what people type first, and what must be copied.

PHRASES is a table of first phrases: tab-separated, a column a language (`en`, `de`, `zh`), named in
the first line, several right answers with `|` between them. A phrase counts as right when the
translation is one of the answers, case and punctuation aside; from the other languages the first
answer is translated. Beside that, generated sentences carry a mark each that a translation has to
keep as it is: a placeholder, a URL, a number or an emoji. All of it as the server translates, beam
4; what was answered is written to benchmarks/results/first-words-<time>.json.
"""

import argparse
import random
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.config import SearchConfig
from model.errors import DataError
from model.loading import load_for_decoding
from model.offline.translator import Translator
from model.text.languages.tags import LanguagePair, primary_language

ROOT = Path(__file__).resolve().parents[1]
BEAM_SIZE = 4
NUM_MARKED = 1_000
NUM_SHOWN = 25
PHRASES = "phrases"

CARRIERS: Mapping[str, Sequence[str]] = {
    "en": (
        "Cannot open {}.",
        "Please enter {} here.",
        "You have selected {}.",
        "{} was not found.",
        "Click {} to continue.",
        "We waited for {} yesterday.",
        "I will send you {} tomorrow.",
        "The value of {} is too large.",
    ),
    "de": (
        "{} kann nicht geöffnet werden.",
        "Bitte geben Sie hier {} ein.",
        "Sie haben {} ausgewählt.",
        "{} wurde nicht gefunden.",
        "Klicken Sie auf {}, um fortzufahren.",
        "Wir haben gestern auf {} gewartet.",
        "Ich schicke dir morgen {}.",
        "Der Wert von {} ist zu groß.",
    ),
    "zh": (
        "无法打开 {}。",
        "请在此输入 {}。",
        "您选择了 {}。",
        "找不到 {}。",
        "点击 {} 继续。",
        "我们昨天等了 {}。",
        "我明天把 {} 发给你。",
        "{} 的值太大。",
    ),
}
"""Sentences around a mark, by language."""

_NAMES = ("name", "user", "file", "count", "path", "title", "email", "date")
_PLACEHOLDERS = ("{{{0}}}", "%({0})s", "${{{0}}}", "{{{{{0}}}}}", "%s", "%d", "%1$s", "<{0}>")
_HOSTS = ("example.com", "docs.example.org", "www.example.net")
_EMOJI = ("🙂", "🎉", "👍", "❤️", "🚀", "😂", "✅", "🔥", "👩‍💻", "🇩🇪")


def _placeholder(rng: random.Random) -> str:
    return rng.choice(_PLACEHOLDERS).format(rng.choice(_NAMES))


def _url(rng: random.Random) -> str:
    path = "/".join(rng.choices(_NAMES, k=rng.randrange(3)))
    query = rng.choice(("", f"?{rng.choice(_NAMES)}={rng.randrange(100)}"))
    return f"https://{rng.choice(_HOSTS)}/{path}{query}"


def _number(rng: random.Random) -> str:
    kinds = (
        str(rng.randrange(10, 100_000)),
        f"{rng.randrange(100)}.{rng.randrange(10)}",
        f"{rng.randrange(24):02}:{rng.randrange(60):02}",
    )
    return rng.choice(kinds)


def _emoji(rng: random.Random) -> str:
    return rng.choice(_EMOJI)


MARKS: Mapping[str, Callable[[random.Random], str]] = {
    "placeholders": _placeholder,
    "URLs": _url,
    "numbers": _number,
    "emoji": _emoji,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One text and what became of it."""

    source: str
    translation: str
    is_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of text in one direction.

    Attributes:
        checkpoint: Its name.
        direction: `en-de`.
        kind: "phrases", or a key of `MARKS`.
        num: How many texts there were.
        share: Of those that are right, in per cent.
        answers: All of them to phrases; the first ones of a mark.
    """

    checkpoint: str
    direction: str
    kind: str
    num: int
    share: float
    answers: tuple[Answer, ...]


def read_phrases(path: Path) -> dict[str, list[list[str]]]:
    """The right answers of every phrase, by language.

    Raises:
        DataError: The file cannot be read, or a line has another number of columns.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    rows = [line.split("\t") for line in lines]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"{path}: every line must have a column a language, as the first one has")
    return {
        language: [row[column].split("|") for row in rows[1:]]
        for column, language in enumerate(rows[0])
    }


def bare(text: str) -> str:
    """A text without case, punctuation and spaces at the ends or doubled."""
    kept = (letter for letter in text.casefold() if unicodedata.category(letter)[0] != "P")
    return " ".join("".join(kept).split())


def marked_sentences(language: str, kind: str, *, num: int, seed: int = 1) -> list[tuple[str, str]]:
    """Sentences that carry a mark, and the mark of each."""
    rng = random.Random(f"{seed} {kind}")
    marks = [MARKS[kind](rng) for _ in range(num)]
    return [(rng.choice(CARRIERS[language]).format(mark), mark) for mark in marks]


def is_kept(mark: str, translation: str) -> bool:
    """Whether a mark stands in a translation, exactly once."""
    return translation.count(mark) == 1


def score_checkpoint(
    directory: Path, phrases: Mapping[str, list[list[str]]], *, num_marked: int
) -> Iterator[Row]:
    """Translate everything in every direction whose languages there is text for."""
    checkpoint = load_for_decoding(directory)
    translator = Translator(checkpoint, max_rows=128)
    name = checkpoint.manifest.name
    for pair in checkpoint.manifest.pairs:
        source, target = map(primary_language, (pair.source, pair.target))
        if source not in CARRIERS or not {source, target} <= phrases.keys():
            continue
        direction = f"{source}-{target}"
        texts = [allowed[0] for allowed in phrases[source]]
        accepted = [{bare(answer) for answer in allowed} for allowed in phrases[target]]
        found = _translated(translator, texts, pair)
        answers = [
            Answer(source=text, translation=translation, is_right=bare(translation) in allowed)
            for text, translation, allowed in zip(texts, found, accepted, strict=True)
        ]
        yield _row(name, direction, PHRASES, answers)
        for kind in MARKS:
            marked = marked_sentences(source, kind, num=num_marked)
            found = _translated(translator, [text for text, _ in marked], pair)
            answers = [
                Answer(source=text, translation=translation, is_right=is_kept(mark, translation))
                for (text, mark), translation in zip(marked, found, strict=True)
            ]
            yield _row(name, direction, kind, answers)


def _translated(translator: Translator, texts: Sequence[str], pair: LanguagePair) -> list[str]:
    search = SearchConfig(beam_size=BEAM_SIZE)
    return [found.text for found in translator.translate(texts, pair, search)]


def _row(checkpoint: str, direction: str, kind: str, answers: Sequence[Answer]) -> Row:
    return Row(
        checkpoint=checkpoint,
        direction=direction,
        kind=kind,
        num=len(answers),
        share=round(100 * sum(answer.is_right for answer in answers) / len(answers), 1),
        answers=tuple(answers if kind == PHRASES else answers[:NUM_SHOWN]),
    )


def table(rows: Sequence[Row]) -> str:
    """Directions by kinds, in Markdown, in per cent."""
    kinds = list(dict.fromkeys(row.kind for row in rows))
    lines = [f"| | {' | '.join(kinds)} |", f"| --- |{' --: |' * len(kinds)}"]
    for direction in dict.fromkeys(row.direction for row in rows):
        shares = {row.kind: f"{row.share:.1f}" for row in rows if row.direction == direction}
        lines.append(f"| {direction} | {' | '.join(shares.get(kind, '–') for kind in kinds)} |")
    return "\n".join(lines)


def page(rows: Sequence[Row], file: str) -> str:
    """Every answer to a phrase from English, good and bad, as a page of Markdown.

    Args:
        rows: Of all checkpoints.
        file: Name of the results file.
    """
    source = f"[{file}](../benchmarks/results/{file})"
    told = (
        "What the bundled networks make of a hundred first phrases, none of them left out. Made\n"
        f"by `python -m benchmarks.first_words PHRASES --page` from\n{source};\n"
        "do not edit. In per cent, all directions:"
    )
    parts = ["# First words: every answer", told, table(rows)]
    for row in rows:
        if row.kind == PHRASES and row.direction.startswith("en-"):
            lines = [f"| {row.direction} | | right |", "| --- | --- | --- |"]
            lines += [
                f"| {one.source} | {one.translation} | {'yes' if one.is_right else 'no'} |"
                for one in row.answers
            ]
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Translate, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("phrases", type=Path, help="table of first phrases")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    parser.add_argument("--num-marked", type=int, default=NUM_MARKED, help="(%(default)s a kind)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, help="also write all answers as a page of Markdown")
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    phrases = read_phrases(arguments.phrases)
    one, several = (arguments.checkpoints.glob(f"{folder}config.json") for folder in ("", "*/"))
    rows = [
        row
        for directory in sorted(path.parent for path in (*one, *several))
        for row in score_checkpoint(directory, phrases, num_marked=arguments.num_marked)
    ]
    result = {
        "benchmark": "first-words",
        "command": describe_command("benchmarks.first_words", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "beam_size": BEAM_SIZE,
        "rows": [asdict(row) for row in rows],
    }
    path = write_result(arguments.results, "first-words", started, result)
    if arguments.page is not None:
        arguments.page.write_text(page(rows, path.name), encoding="utf-8")
    print(f"{table(rows)}\n\n{path}")


if __name__ == "__main__":
    main()

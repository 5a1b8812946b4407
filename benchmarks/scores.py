"""`python -m benchmarks.scores DATA`: how well the bundled checkpoints translate.

Translates public dev and test sets as the server does (the stored weights, the best arithmetic this
machine has, beam 4), writes benchmarks/results/scores-<time>.json, and prints one table for each
direction, with the scores that others published beside ours. Where pairs of a set stand in the text
that a checkpoint learnt from, it is scored without them too. DATA holds `PAIR/{train,dev,test}`
with `CORPUS.LANGUAGE` or `CORPUS.LANGUAGE.gz`, one sentence a line.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import compress, groupby
from operator import not_
from pathlib import Path

from benchmarks.learnt_pairs import read_learnt_pairs
from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.config import SearchConfig
from model.loading import load_for_decoding
from model.offline.evaluate import Scores, default_tokenizer, evaluate, score
from model.offline.translator import Translator
from model.text.languages.tags import LanguagePair, primary_language
from model.train.data.parallel import find_text, read_lines

ROOT = Path(__file__).resolve().parents[1]
BEAM_SIZE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSet:
    """Text with one reference.

    Attributes:
        path: `PAIR/SPLIT/CORPUS` below DATA.
        name: For people.
        published: BLEU that others report, by system: OPUS-MT, NLLB and Argos as evaluated by
            mozilla/firefox-translations-models (evaluation/bleu-results.md at 0285b9a4); Tatoeba
            and captions by the OPUS-MT leaderboard, its best model.
    """

    path: str
    name: str
    published: Mapping[str, float]


SYSTEMS = ("OPUS-MT", "NLLB", "Argos")

_CAPTIONS = {
    "en-zh": (
        ("dev/3am-captions", "image captions (3am-captions, dev)", ""),
        ("test/3am-captions", "image captions (3am-captions, test)", ""),
    ),
    "en-de": (
        ("dev/multi30k-val", "image captions (Multi30k, val)", ""),
        ("test/multi30k-test-2016-flickr", "image captions (Multi30k, test 2016)", "captions2016"),
    ),
}
_TALKS = {"en-zh": (("test/ted-mttt", "talks (ted-mttt)", ""),), "en-de": ()}


def _sets(
    folder: str, *, reverse: bool = False, **published: Sequence[float]
) -> tuple[TextSet, ...]:
    """The sets of a direction; news was written in the language it is translated from.

    Args:
        folder: Of both directions, `SOURCE-TARGET`.
        reverse: From its target to its source.
        published: What `SYSTEMS` reach, in their order, by set.
    """
    direction = "-".join(reversed(folder.split("-"))) if reverse else folder
    named = (
        (folder, "dev/docs-heldout", "software documentation (docs-heldout, dev)", ""),
        *((folder, *captions) for captions in _CAPTIONS[folder]),
        (folder, "test/tatoeba-test-v2021-08-07", "everyday sentences (Tatoeba)", "tatoeba"),
        *((folder, *talks) for talks in _TALKS[folder]),
        (direction, "test/newstest2019", "news (newstest2019)", "news2019"),
        (direction, "test/newstest2020", "news (newstest2020)", "news2020"),
        (folder, "test/flores101-devtest", "encyclopaedia (FLORES devtest)", "flores"),
    )
    return tuple(
        TextSet(
            path=f"{pair}/{path}",
            name=name,
            published=dict(zip(SYSTEMS, published.get(key, ()), strict=False)),  # or the first ones
        )
        for pair, path, name, key in named
    )


SETS: Mapping[str, Sequence[TextSet]] = {
    "en-zh": _sets(
        "en-zh",
        tatoeba=(31.8,),
        news2019=(23.9, 26.0, 26.6),
        news2020=(29.4, 30.1, 31.4),
        flores=(32.2, 30.2, 33.1),
    ),
    "zh-en": _sets(
        "en-zh",
        reverse=True,
        news2019=(21.3, 21.1, 21.0),
        news2020=(22.2, 22.4, 21.3),
        flores=(23.5, 24.0, 23.3),
    ),
    "en-de": _sets(
        "en-de",
        news2019=(40.4, 37.0, 34.6),
        news2020=(31.2, 29.8, 26.4),
        flores=(36.1, 33.7, 31.8),
    ),
    "de-en": _sets(
        "en-de",
        reverse=True,
        captions2016=(40.5,),
        news2019=(39.3, 26.3, 35.8),
        news2020=(39.6, 25.2, 35.8),
        flores=(40.6, 31.2, 36.2),
    ),
}
"""What is scored, by direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One set, translated.

    Attributes:
        checkpoint: Name of the checkpoint.
        direction: A key of `SETS`.
        path: Of the set.
        num_segments: In it.
        bleu: 0 to 100.
        chrf: 0 to 100.
        bleu_signature: sacrebleu's.
        chrf_signature: sacrebleu's.
        seconds: That translating and scoring took.
        num_learnt: Segments that stand, with this translation, in the checkpoint's training text.
        bleu_unlearnt: Of the others; None where there are no such segments.
        chrf_unlearnt: Likewise.
    """

    checkpoint: str
    direction: str
    path: str
    num_segments: int
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    seconds: float
    num_learnt: int = 0
    bleu_unlearnt: float | None = None
    chrf_unlearnt: float | None = None


def main() -> None:
    """Score, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder that holds en-zh/, zh-en/ and others")
    parser.add_argument(
        "--checkpoints",
        type=Path,
        default=ROOT / "checkpoints",
        help="folder of several, or one (%(default)s)",
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    started = datetime.now(UTC)
    machine = describe_machine()
    rows = []
    one, several = (arguments.checkpoints.glob(f"{folder}config.json") for folder in ("", "*/"))
    for directory in sorted(path.parent for path in (*one, *several)):
        for row in score_checkpoint(directory, arguments.data):
            print(f"{row.checkpoint} {row.path}: {row.bleu:.1f}", file=sys.stderr)
            rows.append(row)
    result = {
        "benchmark": "scores",
        "command": describe_command("benchmarks.scores", sys.argv[1:]),
        "started": started.isoformat(timespec="seconds"),
        "machine": machine,
        "beam_size": BEAM_SIZE,
        "rows": [asdict(row) for row in rows],
    }
    path = write_result(arguments.results, "scores", started, result)
    for direction, found in groupby(rows, key=lambda row: row.direction):
        print(f"\n{table(direction, list(found))}")
    print(f"\n{path}")


def score_checkpoint(directory: Path, data: Path) -> Iterator[Row]:
    """Translate and score the sets of every direction that a checkpoint has and `SETS` names.

    Raises:
        CheckpointError: It cannot be loaded.
        DataError: A set is missing.
    """
    checkpoint = load_for_decoding(directory)
    translator = Translator(checkpoint, max_rows=128)
    search = SearchConfig(beam_size=BEAM_SIZE)
    for pair in checkpoint.manifest.pairs:
        direction = f"{primary_language(pair.source)}-{primary_language(pair.target)}"
        corpora = [licence.corpus for licence in checkpoint.manifest.licences]
        learnt = read_learnt_pairs(data, corpora, pair)
        for text in SETS.get(direction, ()):
            sources, references = read_sides(data, text, pair)
            started = time.perf_counter()
            found = evaluate(translator, pair, sources, references, search=search)
            scores, is_learnt = found.scores, learnt.are_learnt(sources, references)
            unlearnt = _score_unlearnt(found.hypotheses, references, is_learnt, pair)
            yield Row(
                checkpoint=checkpoint.manifest.name,
                direction=direction,
                path=text.path,
                num_segments=len(sources),
                bleu=round(scores.bleu.value, 2),
                chrf=round(scores.chrf.value, 2),
                bleu_signature=scores.bleu.signature,
                chrf_signature=scores.chrf.signature,
                seconds=round(time.perf_counter() - started, 1),
                num_learnt=sum(is_learnt),
                bleu_unlearnt=round(unlearnt.bleu.value, 2) if unlearnt else None,
                chrf_unlearnt=round(unlearnt.chrf.value, 2) if unlearnt else None,
            )


def _score_unlearnt(
    hypotheses: Sequence[str],
    references: Sequence[str],
    is_learnt: Sequence[bool],
    pair: LanguagePair,
) -> Scores | None:
    """Scores without what was learnt; None where that is nothing, or all."""
    if not 0 < sum(is_learnt) < len(is_learnt):
        return None
    left = [list(compress(lines, map(not_, is_learnt))) for lines in (hypotheses, references)]
    return score(*left, tokenizer=default_tokenizer(pair.target))


def read_sides(data: Path, text: TextSet, pair: LanguagePair) -> tuple[list[str], list[str]]:
    """Sources and references of a set, in the direction of the pair.

    Raises:
        DataError: A side is missing or cannot be read.
    """
    folder, corpus = data / Path(text.path).parent, Path(text.path).name
    tags = (primary_language(pair.source), primary_language(pair.target))
    sources, references = (read_lines(find_text(folder, corpus, tag)) for tag in tags)
    return sources, references


def table(direction: str, rows: Sequence[Row]) -> str:
    """Ours beside what others published, in Markdown."""
    sets = {text.path: text for text in SETS[direction]}
    lines = [
        f"| {direction} | segments | BLEU | chrF2 | {' | '.join(SYSTEMS)} |",
        f"| --- | --: | --: | --: |{' --: |' * len(SYSTEMS)}",
    ]
    for row in rows:
        text = sets[row.path]
        published = text.published
        others = [f"{published[name]:.1f}" if name in published else "–" for name in SYSTEMS]
        cells = [text.name, f"{row.num_segments:,}", f"{row.bleu:.1f}", f"{row.chrf:.1f}", *others]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        f"\n{sets[row.path].name}: {row.num_learnt:,} of {row.num_segments:,} segments stand in the"
        f" training text; without them BLEU {row.bleu_unlearnt:.2f} ({row.bleu:.2f}),"
        f" chrF2 {row.chrf_unlearnt:.2f} ({row.chrf:.2f})"
        for row in rows
        if row.bleu_unlearnt is not None and row.chrf_unlearnt is not None
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Targets on a GPU, and their comparison with results.

Owns the targets and the arithmetic; measures nothing. A rival's best batch is any that it was
measured at; ours is one of those that the rival was asked for too. So what we reach with more
sentences at once than it was given (the rivals' `BATCHES` end at 256, as 1,024 would take Hugging
Face half a minute and more) counts for no comparison.
"""

from collections.abc import Container, Mapping
from typing import Any

from benchmarks.peers.marks import Mark

SPEED, LATENCY_MS, OVER_CTRANSLATE2 = 100_000.0, 10.0, 3.0
SPEED_SENTENCES = 1024
OVER_HUGGINGFACE, OVER_ITS_BEST, EQUAL_UP_TO = 20.0, 5.0, 32
BLEU_DIFFERENCE = 0.1


def all_marks(result: Mapping[str, Any]) -> list[Mark]:
    """The targets, against what was measured; None where it was not."""

    def ratio(name: str) -> float | None:
        theirs = _best_speed(result.get(name))
        ours = _best_speed(result.get("speed"), among=_asked(result.get(name)))
        return ours / theirs if ours and theirs else None

    bleu = result.get("bleu", {})
    difference = (
        abs(bleu["float32"] - bleu["bfloat16"]) if {"float32", "bfloat16"} <= set(bleu) else None
    )
    return [
        Mark(
            name=f"tokens/s at {SPEED_SENTENCES:,} sentences, beam 4",
            value=_speeds(result.get("speed")).get(SPEED_SENTENCES),
            target=SPEED,
            is_minimum=True,
            unit=" tok/s",
        ),
        Mark(
            name="one sentence of 25 tokens, beam 4",
            value=_latency_ms(result.get("speed")),
            target=LATENCY_MS,
            is_minimum=False,
            unit=" ms",
        ),
        Mark(
            name="over Hugging Face at equal batches of 1 to 32, beam 4",
            value=_least_ratio(result.get("speed"), result.get("huggingface")),
            target=OVER_HUGGINGFACE,
            is_minimum=True,
        ),
        Mark(
            name="over Hugging Face at its best batch, beam 4",
            value=ratio("huggingface"),
            target=OVER_ITS_BEST,
            is_minimum=True,
        ),
        Mark(
            name="over CTranslate2 float16 at its best batch, beam 4",
            value=ratio("ctranslate2"),
            target=OVER_CTRANSLATE2,
            is_minimum=True,
        ),
        Mark(
            name="BLEU, bfloat16 against float32",
            value=difference,
            target=BLEU_DIFFERENCE,
            is_minimum=False,
            unit=" BLEU",
        ),
    ]


def _speeds(rows: object) -> dict[int, float]:
    """Tokens/s at beam 4 by sentences at once; rows that failed have none."""
    return {
        row["sentences"]: float(row["tokens_per_second"])
        for row in (rows if isinstance(rows, list) else [])
        if row.get("beam_size") == 4 and "tokens_per_second" in row
    }


def _asked(rows: object) -> set[int]:
    """Sentences at once that were tried at beam 4, also where that failed."""
    found = rows if isinstance(rows, list) else []
    return {row["sentences"] for row in found if row.get("beam_size") == 4}


def _best_speed(rows: object, among: Container[int] | None = None) -> float | None:
    """Of all numbers of sentences at once, or of some."""
    speeds = _speeds(rows)
    return max(
        (speed for count, speed in speeds.items() if among is None or count in among), default=None
    )


def _least_ratio(ours: object, theirs: object) -> float | None:
    """The least of ours by theirs, where both have as many sentences, few at once."""
    mine, others = _speeds(ours), _speeds(theirs)
    both = [count for count in mine if count in others and count <= EQUAL_UP_TO]
    return min((mine[count] / others[count] for count in both), default=None)


def _latency_ms(rows: object) -> float | None:
    for row in rows if isinstance(rows, list) else []:
        if (row.get("beam_size"), row.get("sentences")) == (4, 1):
            return 1000.0 * float(sorted(row["seconds"])[len(row["seconds"]) // 2])
    return None

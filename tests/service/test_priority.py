import pytest

from service.priority import MAX_INTERACTIVE_WORK, Priority, estimated_work, priority_of, work_of


def test_work_is_rows_by_tokens_and_what_a_segment_costs_besides() -> None:
    assert work_of([10, 20], beam_size=4) == 4 * (30 + 2 * 16)
    assert work_of([], beam_size=4) == 0


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [([], 0), ([""], 16), (["a" * 400], 116), (["猫" * 400], 316), (["a" * 4] * 100, 1700)],
)
def test_the_estimate_goes_by_bytes_so_that_every_script_counts(
    texts: list[str], tokens: int
) -> None:
    assert estimated_work(texts, beam_size=1) == tokens
    assert estimated_work(texts, beam_size=16) == 16 * tokens


@pytest.mark.parametrize(
    ("texts", "beam_size", "priority"),
    [
        (["Good morning."], 4, "interactive"),
        (["Good morning."] * 8, 16, "interactive"),
        (["Good morning."] * 128, 4, "bulk"),
        (["a" * 5_000], 4, "interactive"),
        (["a" * 5_000], 16, "bulk"),
        (["a" * 19_900], 4, "bulk"),
    ],
)
def test_a_page_is_interactive_and_a_book_is_bulk(
    texts: list[str], beam_size: int, priority: Priority
) -> None:
    for asked in (None, "interactive"):
        assert priority_of(estimated_work(texts, beam_size=beam_size), asked) == priority


def test_bulk_is_what_asks_for_it_and_interactive_only_what_is_little_work() -> None:
    assert priority_of(1, "bulk") == "bulk"
    assert priority_of(MAX_INTERACTIVE_WORK, "interactive") == "interactive"
    assert priority_of(MAX_INTERACTIVE_WORK + 1, "interactive") == "bulk"
    assert priority_of(MAX_INTERACTIVE_WORK + 1, None) == "bulk"


def test_a_lone_surrogate_is_counted_like_what_takes_its_place() -> None:
    assert estimated_work(["\ud800" * 400], beam_size=1) == 116

import pytest

from service.api.checks import check_texts, search_beam
from service.errors import RequestError
from service.settings import Settings

SETTINGS = Settings(max_texts=3, max_text_characters=10, max_request_characters=15)


@pytest.mark.parametrize(
    ("texts", "value", "limit"),
    [(["a"] * 4, 4, 3), (["a" * 11], 11, 10), (["a" * 8, "a" * 8], 16, 15)],
)
def test_too_much_text_is_a_413_with_value_and_limit(
    texts: list[str], value: int, limit: int
) -> None:
    with pytest.raises(RequestError) as caught:
        check_texts(texts, SETTINGS)
    problem = caught.value.problem
    assert (problem.status, problem.value, problem.limit) == (413, value, limit)
    assert "aaa" not in problem.message


def test_as_much_text_as_allowed_is_counted() -> None:
    assert check_texts(["a" * 10, "b" * 5, ""], SETTINGS) == 15
    assert check_texts([], SETTINGS) == 0


@pytest.mark.parametrize(
    ("beam_size", "num_alternatives", "beam"), [(4, 0, 4), (4, 3, 4), (4, 4, 5), (1, 15, 16)]
)
def test_the_beam_is_wide_enough_for_the_alternatives(
    beam_size: int, num_alternatives: int, beam: int
) -> None:
    assert search_beam(beam_size, num_alternatives, SETTINGS) == beam


@pytest.mark.parametrize(
    ("beam_size", "num_alternatives", "limit"),
    [(17, 0, 16), (4, 16, 15), (4, 10_000, 15), (4, -1, 15)],
)
def test_a_beam_that_is_too_wide_is_a_400_with_the_limit(
    beam_size: int, num_alternatives: int, limit: int
) -> None:
    with pytest.raises(RequestError) as caught:
        search_beam(beam_size, num_alternatives, SETTINGS)
    assert (caught.value.problem.status, caught.value.problem.limit) == (400, limit)

import tracemalloc

from model.config import SearchConfig
from model.request import DecodeRequest, Hypothesis
from service.models.translating.segment_cache import ENTRY_BYTES, SegmentCache


def _request(
    *source_ids: int, beam_size: int = 2, prefix_ids: tuple[int, ...] = (1,)
) -> DecodeRequest:
    search = SearchConfig(beam_size=beam_size, max_length=20)
    return DecodeRequest(source_ids=source_ids, prefix_ids=prefix_ids, search=search)


def _found(*token_ids: int) -> tuple[Hypothesis, ...]:
    return (
        Hypothesis(
            token_ids=token_ids,
            score=-0.1,
            token_log_probs=tuple(-(token / 3) for token in token_ids),
            is_truncated=False,
            alignment=token_ids,
        ),
        Hypothesis(token_ids=(), score=-1e-300, token_log_probs=(-0.0,), is_truncated=True),
    )


def _key(cache: SegmentCache, *source_ids: int) -> bytes:
    return cache.key(_request(*source_ids), checkpoint="a", scope="")


def test_what_was_kept_is_found_again_bit_for_bit() -> None:
    cache = SegmentCache(100_000)
    key = _key(cache, 5, 6, 2)
    assert cache.find(key) is None
    cache.keep(key, _found(7, 8))
    found = cache.find(_key(cache, 5, 6, 2))
    assert found == _found(7, 8)
    assert found is not None
    assert str(found[1].token_log_probs) == "(-0.0,)"
    cache.clear()
    assert (cache.find(key), cache.num_bytes) == (None, 0)


def test_whatever_a_result_depends_on_is_part_of_the_key() -> None:
    cache = SegmentCache(1)
    keys = [
        cache.key(request, checkpoint=checkpoint, scope=scope)
        for request in (
            _request(5, 6),
            _request(56),
            _request(5, 6, beam_size=3),
            _request(5, 6, prefix_ids=(1, 9)),
            _request(5, prefix_ids=(6, 1)),
        )
        for checkpoint in ("a", "b")
        for scope in ("", "a", "key:one", "key:two")
    ]
    assert len(set(keys)) == len(keys)


def test_the_least_recently_used_leave_when_the_bytes_are_taken() -> None:
    cache = SegmentCache(100_000)
    keys = [_key(cache, number) for number in range(4)]
    cache.keep(keys[0], _found(7))
    size = cache.num_bytes
    cache = SegmentCache(3 * size)
    for key in keys[:3]:
        cache.keep(key, _found(7))
    assert cache.find(keys[0])
    cache.keep(keys[3], _found(7))
    assert [cache.find(key) is not None for key in keys] == [True, False, True, True]
    assert cache.num_bytes == 3 * size
    cache.keep(keys[3], _found(8))
    assert (cache.find(keys[3]), cache.num_bytes) == (_found(8), 3 * size)


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = SegmentCache(ENTRY_BYTES + 300)
    small, large = _key(cache, 1), _key(cache, 2)
    cache.keep(small, _found(7))
    cache.keep(large, _found(*range(100)))
    assert cache.find(small)
    assert cache.find(large) is None


def test_its_bytes_are_what_it_takes() -> None:
    cache = SegmentCache(10_000_000)
    tracemalloc.start()
    for number in range(2_000):
        cache.keep(_key(cache, number, 2), _found(7, 8, 9))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.5 < taken / cache.num_bytes < 1.05

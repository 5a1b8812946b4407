from model.decode.backends.cuda.buckets import rounded_up


def test_buckets_are_powers_of_two_and_one_and_a_half_times_them() -> None:
    sizes = [rounded_up(value, minimum=1, maximum=50) for value in range(1, 52)]
    assert sorted(set(sizes)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 50]
    assert all(size >= value for value, size in enumerate(sizes[:50], start=1))
    assert rounded_up(3, minimum=32, maximum=64) == 32

from service.engine.worker.headroom import MIN_ROWS, RECOVERY_SECONDS, Headroom


def test_all_rows_may_run_until_memory_runs_out():
    assert Headroom(max_rows=128).rows(now=1e9) == 128


def test_a_shortage_halves_what_ran_and_time_doubles_it():
    headroom = Headroom(max_rows=128)
    headroom.ran_out(80, now=1000.0)
    assert headroom.rows(now=1000.0) == 40
    assert headroom.rows(now=999.9 + RECOVERY_SECONDS) == 40
    assert headroom.rows(now=1000.0 + RECOVERY_SECONDS) == 80
    assert headroom.rows(now=1000.0 + 2 * RECOVERY_SECONDS) == 128
    assert repr(headroom) == "<Headroom 128/128>"


def test_a_wide_beam_always_has_room_and_a_small_session_no_more_than_it_has():
    headroom = Headroom(max_rows=128)
    headroom.ran_out(4, now=0.0)
    assert headroom.rows(now=0.0) == MIN_ROWS
    small = Headroom(max_rows=8)
    small.ran_out(8, now=0.0)
    assert small.rows(now=0.0) == 8

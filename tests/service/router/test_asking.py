"""Which group or server is asked next, where one is not well or does not know."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from service.router.connection import Asked, BytesBody
from service.router.groups import ConnectError, LostError, SilentError
from service.router.pool import Answer
from support.scripted_fleet import (
    AWAY,
    GERMAN,
    SILENT,
    UNKNOWN,
    UNREADY,
    UP,
    ScriptedFleet,
    answering,
    refusing,
)


@pytest.mark.parametrize(
    "first",
    [refusing(), refusing("restarting"), ConnectError("refused")],
    ids=["leaves", "restarts", "is not reached"],
)
def test_what_a_group_has_not_begun_is_asked_of_the_next_one(first: Answer | Exception) -> None:
    for handler, path, data in (
        ("translate", "/translate", GERMAN),
        ("detect", "/detect", b'{"q": "Hallo"}'),
        ("from_any", "/frontend/settings", b""),
    ):
        fleet = ScriptedFleet(a=first, b=answering(b'{"of": "b"}'))
        assert fleet.ask(handler, path, "POST", data) == (200, b'{"of": "b"}')
        assert fleet.asked == ["a", "b"]


def test_what_a_group_may_have_begun_is_asked_of_no_other() -> None:
    lost = LostError("it closed the connection")
    cut = refusing("cut_off")
    for first, told in ((lost, (502, "group_lost")), (cut, (503, cut._beginning))):
        fleet = ScriptedFleet(a=first, b=answering())
        assert fleet.ask("translate", "/translate", "POST", GERMAN) == told
        assert fleet.asked == ["a"]
    fleet = ScriptedFleet(a=lost, b=answering(b"page"))
    assert fleet.ask("from_any", "/") == (200, b"page"), "it changes nothing"


def test_a_refusal_of_all_is_the_first_ones_own() -> None:
    refusal = refusing("restarting")
    fleet = ScriptedFleet(a=ConnectError("refused"), b=refusal, c=refusing())
    answer = fleet.ask("translate", "/translate", "POST", GERMAN)
    assert answer == (503, refusal._beginning)
    fleet = ScriptedFleet(a=ConnectError("refused"))
    assert fleet.ask("translate", "/translate", "POST", GERMAN) == (503, "group_unavailable")


def test_a_group_that_is_known_to_be_away_is_asked_for_no_translation() -> None:
    fleet = ScriptedFleet(away=("a",), a=answering())
    assert fleet.ask("translate", "/translate", "POST", GERMAN) == (503, "group_unavailable")
    assert fleet.ask("detect", "/detect", "POST", b'{"q": "a"}') == (503, "group_unavailable")
    assert fleet.asked == []


def test_what_has_an_id_is_asked_of_those_that_are_away_last_and_where_it_changes_nothing() -> None:
    lost, unknown = LostError("it closed the connection"), answering(status=404)
    fleet = ScriptedFleet(away=("a",), a=lost, b=answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked == ["b"]
    fleet = ScriptedFleet(away=("a",), a=lost, b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable"), "a may have it"
    assert fleet.asked == ["b", "a"]
    fleet = ScriptedFleet(away=("a",), a=answering(b"back"), b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"back")
    fleet = ScriptedFleet(away=("a",), a=answering(status=204), b=unknown)
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")
    assert fleet.asked == ["b"], "it might do it when nobody knows"


def test_those_that_are_away_have_one_moment_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.router.asking._BRIEF_SECONDS", 0.05)
    fleet = ScriptedFleet(a=dict.fromkeys("1234", UNKNOWN), b=UNKNOWN)
    fleet.is_now(AWAY, "a1", "a2", "a3")
    for address in ("a1", "a2"):
        cast(Any, fleet.member(address).pool).hangs = True
    cast(Any, fleet.member("a3").pool).answer = answering(b"mine")
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked[:2] == ["a4", "b"]
    assert sorted(fleet.asked[2:]) == ["a1", "a2", "a3"]
    fleet.asked.clear()
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked == ["a4", "b", "a3"], "nobody else waits for those that said nothing"
    fleet.is_now(SILENT, "a3")
    fleet.asked.clear()
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
    assert fleet.asked == ["a4", "b"], "those that are waited for in vain cost no time"


def test_answers_that_are_there_when_the_client_goes_are_given_back() -> None:
    given_back: list[object] = []
    connection: Any = object()
    has_it = Answer(200, [], connection=connection, give_back=given_back.append)
    fleet = ScriptedFleet(a={"1": has_it, "2": UNKNOWN})
    fleet.is_now(AWAY, "a1", "a2")
    cast(Any, fleet.member("a2").pool).hangs = True
    asked = Asked(method=b"GET", target=b"/v1/documents/x/result", headers=(), body=BytesBody())

    async def main() -> None:
        asking = asyncio.create_task(
            fleet.dispatcher.asking._who_knows(asked, fleet.watch.directory.groups)
        )
        while len(fleet.asked) < 2:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        await asyncio.sleep(0)
        assert asking.cancelled()
        assert given_back == [connection]

    asyncio.run(main())


def test_one_that_says_nothing_holds_up_nobody_who_looks_for_what_another_one_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.router.asking._HEAD_START_SECONDS", 0.05)
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": answering(b"mine")})
    fleet.member("a1").state = fleet.member("a2").state = UP
    cast(Any, fleet.member("a1").pool).hangs = True
    for _ in range(2):
        assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")


def test_what_has_an_id_is_asked_of_the_next_one_where_that_does_nothing_twice() -> None:
    lost, unknown = SilentError("it does not answer any more"), answering(status=404)
    fleet = ScriptedFleet(a=lost, b=answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert ScriptedFleet(a=lost, b=unknown).ask("by_id", "/v1/documents/x") == (502, "group_lost")
    fleet = ScriptedFleet(a=lost, b=answering(status=204))
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (502, "group_lost")
    assert fleet.asked == ["a"]
    refusal = refusing()
    for answers in ({"a": refusal, "b": unknown}, {"b": unknown, "a": refusal}):
        found = ScriptedFleet(**answers).ask("by_id", "/v1/documents/x")
        assert found == (503, refusal._beginning), "it may have it"
    assert ScriptedFleet(a=unknown, b=unknown).ask("by_id", "/v1/documents/x")[0] == 404


class _BreaksOff(Answer):
    """An answer whose body does not come to its end."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        yield b"{"
        raise LostError("it closed the connection")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_one_that_does_not_know_and_breaks_off_costs_its_own_turn_alone(method: str) -> None:
    broken = _BreaksOff(404, [])
    for answers in ({"1": broken, "2": answering(b"mine")}, {"1": answering(b"mine"), "2": broken}):
        fleet = ScriptedFleet(a=answers)
        assert fleet.ask("by_id", "/v1/documents/x", method) == (200, b"mine")
    fleet = ScriptedFleet(a={"1": broken, "2": UNKNOWN})
    assert fleet.ask("by_id", "/v1/documents/x", method) == (502, "group_lost")
    assert sorted(fleet.asked) == ["a1", "a2"]


class _Stalls(Answer):
    """An answer whose body does not come."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""


def test_one_whose_answer_stalls_holds_up_nobody_who_looks_for_what_another_one_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.router.asking._HEAD_START_SECONDS", 0.05)
    fleet = ScriptedFleet(a={"1": _Stalls(404, []), "2": answering(b"mine")})
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_has_an_id_is_asked_of_every_server_of_a_group(method: str) -> None:
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": answering(b"mine")}, b=answering())
    for _ in range(2):
        assert fleet.ask("by_id", "/v2/document/x", method) == (200, b"mine")
    assert sorted(fleet.asked) == ["a1", "a2", "a2"]
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": UNKNOWN}, b={"1": UNKNOWN, "2": UNKNOWN})
    assert fleet.ask("by_id", "/v2/document/x", method)[0] == 404
    assert sorted(fleet.asked) == ["a1", "a2", "b1", "b2"]


def test_while_a_server_that_may_have_it_was_not_asked_nobody_says_that_it_is_not_there() -> None:
    for state, asked in ((AWAY, ["a2", "a1"]), (SILENT, ["a2"])):
        fleet = ScriptedFleet(a={"1": LostError("gone"), "2": UNKNOWN})
        fleet.is_now(state, "a1")
        assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
        assert fleet.asked == asked
        fleet = ScriptedFleet(a={"1": answering(status=204), "2": UNKNOWN})
        fleet.is_now(state, "a1")
        assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")
        assert fleet.asked == ["a2"], "it might do it when nobody knows"
    fleet = ScriptedFleet(a={"1": UNKNOWN, "2": ConnectError("refused")})
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable")
    assert fleet.member("a2").state.problem == "refused"
    fleet = ScriptedFleet(a=UNKNOWN, b=UNKNOWN)
    fleet.members["b"]._members.clear()
    assert fleet.ask("by_id", "/v1/documents/x") == (503, "group_unavailable"), "it has no address"


def test_those_that_are_up_are_asked_before_those_that_say_they_are_not() -> None:
    fleet = ScriptedFleet(a={"1": answering(status=500), "2": UNKNOWN}, b=answering(b"mine"))
    fleet.is_now(UNREADY, "a1")
    assert fleet.ask("by_id", "/v1/documents/x") == (200, b"mine")
    assert fleet.asked == ["a2", "b"]


def test_names_are_looked_up_once_before_anybody_says_that_there_is_no_such_thing() -> None:
    fleet = ScriptedFleet(a=UNKNOWN, b=UNKNOWN)
    assert fleet.ask("by_id", "/v1/documents/x")[0] == 404
    assert fleet.num_looks == 2
    fleet = ScriptedFleet(a=UNKNOWN, b=answering(b"mine"))
    assert fleet.ask("by_id", "/v1/documents/x")[0] == 200
    assert fleet.num_looks == 0
    fleet = ScriptedFleet(a=UNKNOWN)
    fleet.found["a"] = ["a", "new"]
    assert fleet.ask("by_id", "/v1/documents/x", "DELETE") == (503, "group_unavailable")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_server_that_has_left_is_asked_and_one_that_is_no_more_is_not_missed(method: str) -> None:
    for answer, told in (
        (answering(b"mine"), (200, b"mine")),
        (UNKNOWN, (404, UNKNOWN._beginning)),
        (LostError("gone"), (502, "group_lost")),
        (ConnectError("refused"), (404, UNKNOWN._beginning)),
    ):
        fleet = ScriptedFleet(a={"1": answer, "2": UNKNOWN})
        fleet.leaves("a1")
        assert fleet.ask("by_id", "/v2/document/x", method) == told
        assert fleet.asked == ["a2", "a1"]


def test_the_next_server_of_a_group_is_asked_where_one_begins_nothing() -> None:
    for first in (refusing(), refusing("booting"), ConnectError("refused")):
        fleet = ScriptedFleet(a={"1": first, "2": answering(b"done")})
        for _ in range(4):
            assert fleet.ask("translate", "/translate", "POST", GERMAN) == (200, b"done")
        assert fleet.watch.directory.groups[0].is_up
    assert fleet.asked.count("a1") == 1, "it is known then"
    fleet = ScriptedFleet(a={"1": LostError("gone"), "2": LostError("gone")})
    assert fleet.ask("translate", "/translate", "POST", GERMAN) == (502, "group_lost")
    assert len(fleet.asked) == 1, "it may have been begun"
    fleet = ScriptedFleet(a={"1": LostError("gone"), "2": answering(b"page")})
    assert {fleet.ask("from_any", "/") for _ in range(2)} == {(200, b"page")}

"""Requests and characters that count for keys and for addresses."""

import asyncio
from pathlib import Path

import pytest

from service.access.access import MAX_KEYLESS, Access, AccessPolicy, Caller
from service.access.key_store import KeySources, KeyStore
from service.access.rates import RateLimiter
from service.errors import RequestError
from support.keyed_client import (
    ADMIN,
    ALICE,
    LET_IN,
    NATIVE,
    TEXT,
    WRONG,
    Client,
    key_line,
    outcome,
    send_unread,
)


def test_an_address_is_counted_before_the_body_is_read(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, requests_per_minute=2)
    outcomes = [outcome(client.send(json=TEXT)) for _ in range(2)]
    assert outcomes == [(401, "key_required")] * 2
    for _ in range(2 * MAX_KEYLESS):
        assert outcome(client.send(json=TEXT)) == (429, "rate_limited")
    status, content = send_unread(client.app, content_type="application/json")
    assert (status, content["code"], content["limit"]) == (429, "rate_limited", 20)
    words = "20 keyless requests a minute for this address; with a key send it as Authorization:"
    assert words in str(content["error"])
    # The header is read in any case.
    assert outcome(client.send(json=TEXT | {"api_key": ADMIN})) == (429, "rate_limited")
    assert outcome(client.send(json=TEXT, key=ADMIN)) == LET_IN


@pytest.mark.parametrize("kind", ["json", "data", "params"])
def test_a_key_that_comes_as_a_value_is_good_where_strangers_have_used_up_the_address(
    keys_file: Path, kind: str
) -> None:
    client = Client(api_keys_file=keys_file, requests_per_minute=2)
    for _ in range(4):
        reply = client.send(**{kind: TEXT})
    assert reply.json()["error"] == "Slowdown: the limit is 2 requests a minute for this address"
    outcomes = [outcome(client.send(**{kind: TEXT | {"api_key": ALICE}})) for _ in range(3)]
    assert outcomes == [LET_IN] * 3
    reply = client.send(**{kind: TEXT | {"api_key": ALICE}})
    assert reply.json()["error"] == "Slowdown: the limit is 3 requests a minute"
    for values in (TEXT, TEXT | {"api_key": WRONG}):
        assert outcome(client.send(**{kind: values})) == (429, "rate_limited")


def test_good_keys_and_paths_where_none_can_follow_leave_room_for_keys_that_do(
    keys_file: Path,
) -> None:
    keys_file.write_text(key_line("many", ALICE, requests_per_minute=1000))
    client = Client(api_keys_file=keys_file, requests_per_minute=1)
    for _ in range(MAX_KEYLESS + 2):
        client.send("/v1/translate", json=NATIVE)
        assert outcome(client.send(json=TEXT | {"api_key": ALICE})) == LET_IN
    assert outcome(client.send("/v1/translate", json=NATIVE)) == (429, "rate_limited")


def test_strangers_over_their_limit_are_refused_where_a_key_is_not_needed(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, key_required=False, requests_per_minute=1)
    assert [outcome(client.send(json=TEXT)) for _ in range(2)] == [LET_IN, (429, "rate_limited")]
    assert outcome(client.send(json=TEXT | {"api_key": ALICE})) == LET_IN


def test_a_key_in_the_body_is_counted_for_itself_and_not_for_its_address(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, requests_per_minute=1)
    outcomes = [outcome(client.send(json=TEXT | {"api_key": ALICE})) for _ in range(3)]
    outcomes.append(outcome(client.send(params=TEXT | {"api_key": ALICE})))
    assert outcomes == [LET_IN] * 3 + [(429, "rate_limited")]
    assert outcome(client.send(json=TEXT)) == (401, "key_required")
    assert outcome(client.send(json=TEXT)) == (429, "rate_limited")


def test_a_limit_is_named_and_says_when_to_come_back() -> None:
    client = Client(requests_per_minute=1)
    client.send(json=TEXT)
    reply = client.send(json=TEXT)
    assert reply.json() == {
        "error": "Slowdown: the limit is 1 requests a minute for this address",
        "code": "rate_limited",
        "value": 1,
        "limit": 1,
    }
    assert 1 <= int(reply.headers["retry-after"]) <= 120


def test_addresses_are_counted_apart_and_a_forged_one_is_not_believed() -> None:
    client = Client(requests_per_minute=1)
    forged = {"x-forwarded-for": "198.51.100.1"}
    outcomes = [
        outcome(client.send(json=TEXT, address=address, headers=headers))
        for address, headers in (
            ("203.0.113.1", {}),
            ("203.0.113.2", {}),
            ("203.0.113.1", forged),
        )
    ]
    assert outcomes == [LET_IN, LET_IN, (429, "rate_limited")]


def test_behind_a_trusted_proxy_its_clients_are_counted_apart() -> None:
    client = Client(requests_per_minute=1, trusted_proxies="10.0.0.0/8")

    def from_client(forwarded: str) -> tuple[int, str]:
        headers = {"x-forwarded-for": forwarded}
        return outcome(client.send(json=TEXT, address="10.0.0.1", headers=headers))

    assert from_client("198.51.100.1") == LET_IN
    assert from_client("198.51.100.2") == LET_IN
    assert from_client("192.0.2.1, 198.51.100.2") == (429, "rate_limited")


def test_refused_keys_count_for_their_address(keys_file: Path) -> None:
    client = Client(api_keys_file=keys_file, requests_per_minute=2)
    outcomes = [outcome(client.send(json=TEXT, key=WRONG)) for _ in range(3)]
    assert outcomes == [(403, "invalid_api_key")] * 2 + [(429, "rate_limited")]
    # A good key is counted for itself, wherever it comes from.
    assert outcome(client.send(json=TEXT, key=ALICE)) == LET_IN


def test_characters_are_counted_against_the_keys_own_limit() -> None:
    async def scenario() -> list[str]:
        access = Access(AccessPolicy(), RateLimiter(lambda: 0.0), KeyStore(KeySources()))
        caller = Caller(identity="key:a", requests_per_minute=None, characters_per_minute=100)
        codes = []
        for number in (60, 0, 40, 1, 101):
            try:
                await access.spend_characters(caller, number)
            except RequestError as error:
                codes.append(error.problem.code)
            else:
                codes.append("ok")
        return codes

    assert asyncio.run(scenario()) == ["ok", "ok", "ok", "rate_limited", "too_long"]

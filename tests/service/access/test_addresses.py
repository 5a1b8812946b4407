from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.access.addresses import UNKNOWN, client_of, scheme_of

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def test_the_header_is_not_read_without_a_trusted_proxy() -> None:
    assert client_of("203.0.113.7", ["198.51.100.1"], ()) == "203.0.113.7"
    assert client_of("203.0.113.7", ["198.51.100.1"], PROXIES) == "203.0.113.7"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "10.0.0.1"),
        (["198.51.100.1"], "198.51.100.1"),
        (["198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        (["198.51.100.1", "10.9.9.9"], "198.51.100.1"),
        # What the client wrote itself stands left of what the proxy added.
        (["192.0.2.66, 198.51.100.1"], "198.51.100.1"),
        (["192.0.2.66", "198.51.100.1, 10.1.1.1"], "198.51.100.1"),
        (["10.7.7.7"], "10.7.7.7"),
        (["nonsense"], "10.0.0.1"),
        (["198.51.100.1, nonsense"], "10.0.0.1"),
        (["198.51.100.1,"], "10.0.0.1"),
        (["198.51.100.1:4711"], "198.51.100.1"),
        (["[2001:db8::5]:4711"], "2001:db8::/64"),
        (["2001:db8::5"], "2001:db8::/64"),
        (["198.51.100.1, fd00::1"], "198.51.100.1"),
        (["::ffff:198.51.100.1"], "198.51.100.1"),
        (["1" * 65], "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_hop_that_no_trusted_proxy_vouches_for(
    forwarded: list[str], client: str
) -> None:
    assert client_of("10.0.0.1", forwarded, PROXIES) == client


def test_addresses_of_one_ipv6_network_are_one_client() -> None:
    clients = {client_of(f"2001:db8:1:2:{n}::{n}", [], ()) for n in range(9)}
    assert clients == {"2001:db8:1:2::/64"}
    assert client_of("fe80::1%eth0", [], ()) == "fe80::/64"


def test_a_peer_without_an_address_is_unknown() -> None:
    assert client_of(None, ["198.51.100.1"], PROXIES) == UNKNOWN
    assert client_of("", [], ()) == UNKNOWN


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=3))
def test_any_header_has_an_answer(peer: str, forwarded: list[str]) -> None:
    trusts_all = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    assert client_of(peer, forwarded, trusts_all)
    assert client_of("10.0.0.1", forwarded, trusts_all) != UNKNOWN


def test_an_address_may_have_64_characters_and_no_more() -> None:
    longest = "2001:db8::1%" + "e" * 52
    assert len(longest) == 64
    assert client_of(longest, [], ()) == "2001:db8::/64"
    assert client_of(longest + "e", [], ()) == UNKNOWN
    assert client_of("10.0.0.1", [longest], PROXIES) == "2001:db8::/64"
    assert client_of("10.0.0.1", [longest + "e"], PROXIES) == "10.0.0.1"


def test_neighbouring_networks_are_different_clients() -> None:
    assert client_of("2001:db8:1:2::1", [], ()) != client_of("2001:db8:1:3::1", [], ())
    assert client_of("192.0.2.1", [], ()) != client_of("192.0.2.2", [], ())


@pytest.mark.parametrize(
    ("written", "client"),
    [
        ("[2001:db8::5]", "2001:db8::/64"),
        ("  198.51.100.1\t", "198.51.100.1"),
        ("[::ffff:198.51.100.1]:80", "198.51.100.1"),
        ("2001:db8::5:4711", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("fe80::1%", "fe80::/64"),
        ("198.51.100.1%eth0", "198.51.100.1"),
    ],
)
def test_proxies_write_an_address_in_many_ways(written: str, client: str) -> None:
    assert client_of("10.0.0.1", [written], PROXIES) == client


def test_the_walk_goes_on_through_trusted_hops_of_either_family() -> None:
    hops = ["192.0.2.66, 198.51.100.1, fd00::1, ::ffff:10.0.0.3", "10.0.0.2"]
    assert client_of("fd00::2", hops, PROXIES) == "198.51.100.1"
    assert client_of("fd00::2", hops, PROXIES[1:]) == "10.0.0.2"
    assert client_of("::ffff:10.0.0.1", hops, PROXIES) == "198.51.100.1"


@pytest.mark.parametrize(
    ("peer", "forwarded", "scheme"),
    [
        ("10.0.0.1", ["https"], "https"),
        ("10.0.0.1", ["HTTP"], "http"),
        ("10.0.0.1", ["https, http"], "https"),  # each proxy of a chain added its own
        ("10.0.0.1", ["https", "http"], "https"),
        ("10.0.0.1", [], None),
        ("10.0.0.1", ["javascript"], None),
        ("10.0.0.1", [""], None),
        ("203.0.113.7", ["https"], None),
        (None, ["https"], None),
    ],
)
def test_the_scheme_of_a_client_is_what_a_trusted_proxy_says(
    peer: str | None, forwarded: list[str], scheme: str | None
) -> None:
    assert scheme_of(peer, forwarded, PROXIES) == scheme
    assert scheme_of(peer, forwarded, ()) is None

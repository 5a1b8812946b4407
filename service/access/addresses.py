"""Client addresses and schemes behind proxies, and which addresses count as one client.

Owns when `X-Forwarded-For` is believed: only as far as trusted proxies wrote it; and when
`X-Forwarded-Proto` is: where one sent it. Anybody can send these headers, so without a trusted
proxy they are not read at all.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from service.networks import Network

Address = IPv4Address | IPv6Address

UNKNOWN = "unknown"

_MAX_LENGTH = 64
_CLIENT_BITS_IPV6 = 64
_MAX_KEPT = 1024
"""Addresses whose meaning is kept: a client that stays connected has it worked out once."""


def client_of(peer: str | None, forwarded: Sequence[str], trusted: Iterable[Network]) -> str:
    """The client that is counted: an IPv4 address, or the /64 of an IPv6 address.

    The hops are walked from our own end: as long as one is a trusted proxy, the one it names
    is next. A hop that is no address ends the walk at the proxy that wrote it.

    Args:
        peer: Address of the connection's other end; None or a path for a Unix socket.
        forwarded: Every `X-Forwarded-For` header, in order.
        trusted: The proxies whose word is taken.

    Returns:
        `UNKNOWN` for a peer that has no address.
    """
    address = address_of(peer, forwarded, trusted)
    return UNKNOWN if address is None else _client(address)


def address_of(
    peer: str | None, forwarded: Sequence[str], trusted: Iterable[Network]
) -> Address | None:
    """The client's own address, found as `client_of` does; None for a peer that has none."""
    address = _parse(peer or "")
    if address is None:
        return None
    networks = tuple(trusted)  # without one no hop would be walked, so none is split off
    hops = [hop for header in forwarded for hop in header.split(",")] if networks else []
    while hops and any(address in network for network in networks):
        hop = _parse(hops.pop().strip())
        if hop is None:
            break
        address = hop
    return address


def scheme_of(peer: str | None, forwarded: Sequence[str], trusted: Iterable[Network]) -> str | None:
    """What the client speaks, http or https, as a trusted proxy says; None where none does.

    Args:
        peer: As of `client_of`.
        forwarded: Every `X-Forwarded-Proto` header, in order; the first value is the client's.
        trusted: As of `client_of`.
    """
    address = _parse(peer or "")
    if not forwarded or address is None or not any(address in network for network in trusted):
        return None
    scheme = forwarded[0].partition(",")[0].strip().lower()
    return scheme if scheme in ("http", "https") else None


@lru_cache(maxsize=_MAX_KEPT)
def _parse(text: str) -> Address | None:
    """An address as proxies write it: bare, in brackets, with a port."""
    if len(text) > _MAX_LENGTH:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


@lru_cache(maxsize=_MAX_KEPT)
def _client(address: Address) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    # A client that has one address of a /64 has all of them.
    return str(IPv6Network((address, _CLIENT_BITS_IPV6), strict=False))

"""Networks as an operator writes them: one address, or a prefix such as 10.0.0.0/8.

Owns their parsing, for settings that name proxies. Which address of a request counts is
`service.access.addresses`.
"""

from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network


def parse_network(text: str) -> Network:
    """A network such as `10.0.0.0/8`, or one address.

    Raises:
        ValueError: It is neither, or has bits set behind its prefix.
    """
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(f"{text!r} is no address and no network such as 10.0.0.0/8") from None

from ipaddress import ip_network

import pytest

from service.networks import parse_network


@pytest.mark.parametrize("text", ["10.0.0.1/8", "proxy", "", "10.0.0.0/33", "1.2.3"])
def test_what_is_no_network_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="no address and no network"):
        parse_network(text)


def test_a_network_may_be_one_address() -> None:
    assert parse_network("10.0.0.1") == ip_network("10.0.0.1/32")

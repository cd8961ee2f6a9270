"""The network guard: connections to other machines are refused and recorded, loopback is not."""

from __future__ import annotations

import socket

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from .network import ATTEMPTS


@pytest.fixture
def attempts() -> list[str]:
    """The attempts of this test, taken before the guard of every test counts them."""
    return ATTEMPTS


def taken(attempts: list[str]) -> list[str]:
    seen = attempts.copy()
    attempts.clear()
    return seen


@pytest.mark.parametrize("address", ["192.0.2.1", "169.254.169.254", "10.0.0.1"])
def test_a_connection_to_another_machine_is_refused(attempts: list[str], address: str) -> None:
    with socket.socket() as one, pytest.raises(OSError, match="tried to leave this machine"):
        one.connect((address, 443))
    with socket.socket() as one, pytest.raises(OSError, match="tried to leave this machine"):
        one.connect_ex((address, 443))
    with (
        socket.socket(type=socket.SOCK_DGRAM) as one,
        pytest.raises(OSError, match="tried to leave this machine"),
    ):
        one.sendto(b"", (address, 53))
    assert taken(attempts) == [f"socket.connect {address}"] * 2 + [f"socket.sendto {address}"]


def test_a_name_is_not_even_looked_up(attempts: list[str]) -> None:
    with pytest.raises(OSError, match="tried to leave this machine"):
        socket.create_connection(("sts.us-west-2.amazonaws.com", 443))
    assert taken(attempts) == ["socket.getaddrinfo sts.us-west-2.amazonaws.com"]


def test_boto3_without_moto_is_stopped_and_recorded_although_botocore_swallows_the_error(attempts: list[str]) -> None:
    once = boto3.session.Config(retries={"total_max_attempts": 1})
    with pytest.raises(EndpointConnectionError):
        boto3.client("sts", region_name="us-west-2", config=once).get_caller_identity()
    assert taken(attempts) == ["socket.getaddrinfo sts.us-west-2.amazonaws.com"]


def test_loopback_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()

"""Who may talk to the server."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from paddlejob.web.access import AccessControl, is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.5.5.5", True), ("0.0.0.0", False), ("x", False)],
)
def test_loopback_is_known_by_address_and_name(host: str, expected: bool):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("header", ["localhost", "127.0.0.1:8700", "[::1]:8700", "LOCALHOST:1"])
def test_a_server_on_loopback_answers_to_the_names_of_this_machine(header: str):
    assert AccessControl("127.0.0.1", 8700).accepts_host(header)


@pytest.mark.parametrize(
    "header", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "[", "a@b"]
)
def test_a_server_on_loopback_answers_to_no_other_name(header: str):
    assert not AccessControl("127.0.0.1", 8700).accepts_host(header)


def test_a_server_for_all_addresses_answers_to_addresses_but_not_to_names_of_strangers():
    access = AccessControl("0.0.0.0", 8700)
    assert access.accepts_host("10.1.2.3:8700")
    assert not access.accepts_host("evil.example")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, True),
        ({"Origin": "http://localhost:8700"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "http://localhost:8701"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8700"}, False),
    ],
)
def test_a_request_of_another_origin_is_known_by_its_headers(headers: dict[str, str], expected: bool):
    given = CIMultiDictProxy(CIMultiDict({"Host": "localhost:8700", **headers}))
    assert AccessControl("127.0.0.1", 8700).is_same_origin(given) is expected


def test_two_servers_share_no_secret_and_no_cookie():
    first, second = AccessControl("127.0.0.1", 1), AccessControl("127.0.0.1", 2)
    assert first.token != second.token and first.cookie != second.cookie
    assert first.accepts_token(first.token) and not first.accepts_token(second.token)
    assert not first.accepts_token("") and not first.accepts_token(first.token[:-1])

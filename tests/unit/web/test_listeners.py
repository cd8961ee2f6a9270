"""Where the server listens: both loopback addresses, or a Unix socket of the user."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from paddlejob.errors import NotPossible
from paddlejob.web import listeners
from paddlejob.web.listeners import listen, listen_at, shown_host


@contextmanager
def listening(host: str, port: int | None) -> Iterator[list[tuple[str, int]]]:
    sockets = listen(host, port)
    yield [one.getsockname()[:2] for one in sockets]
    for one in sockets:
        one.close()


@contextmanager
def stranger(host: str, port: int = 0) -> Iterator[int]:
    """Somebody else who listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as made:
        yield made.getsockname()[1]


def test_both_loopback_addresses_are_listened_on_because_localhost_means_either():
    for host in ("127.0.0.1", "localhost", "::1"):
        with listening(host, 0) as found:
            assert {address for address, _ in found} == {"127.0.0.1", "::1"}
            assert len({port for _, port in found}) == 1


@pytest.mark.parametrize("taken", ["127.0.0.1", "::1"])
def test_a_port_that_somebody_has_on_either_address_is_an_error_if_it_was_asked_for(taken: str):
    with stranger(taken) as port, pytest.raises(NotPossible) as raised:
        listen("127.0.0.1", port)
    assert str(raised.value) == (
        f"cannot listen on {shown_host(taken)}:{port}: Address already in use; choose another --port or --host"
    )


@pytest.mark.parametrize("taken", ["127.0.0.1", "::1"])
def test_without_a_port_the_default_or_one_that_is_free_on_both_is_used(taken: str, monkeypatch: pytest.MonkeyPatch):
    with stranger(taken) as port:
        monkeypatch.setattr(listeners, "DEFAULT_PORT", port)
        with listening("127.0.0.1", None) as found:
            assert {other for _, other in found} & {0, port} == set()
    with listening("127.0.0.1", None) as found:
        assert {other for _, other in found} == {port}


def test_a_machine_without_ipv6_has_one_loopback_address(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listeners, "LOOPBACKS", ("127.0.0.1", "100::1"))
    with listening("127.0.0.1", 0) as found:
        assert [address for address, _ in found] == ["127.0.0.1"]


def test_an_address_of_another_machine_is_an_error():
    with pytest.raises(
        NotPossible, match=r"cannot listen on 192\.0\.2\.1:\d+: Cannot assign .*; choose another --port"
    ):
        listen("192.0.2.1", None)


def test_the_url_names_a_host_that_a_browser_can_open():
    assert shown_host("127.0.0.1") == "127.0.0.1"
    assert shown_host("::1") == "[::1]"
    assert shown_host("0.0.0.0") not in ("", "0.0.0.0")


def test_a_unix_socket_is_for_its_user_only_and_replaces_one_that_was_left(tmp_path: Path):
    path = tmp_path / "web.sock"
    for _ in range(2):
        with closing(listen_at(path)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with pytest.raises(NotPossible, match="a server listens there; choose another --socket"):
                listen_at(path)
    assert os.umask(0o022) == 0o022


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("file", 0o700, "a file with this name exists"),
        ("link", 0o700, "a file with this name exists"),
        ("absent/web.sock", 0o700, "No such file or directory"),
        ("x" * 120, 0o700, "AF_UNIX path too long"),
        ("web.sock", 0o777, "other users may replace files in"),
        ("web.sock", 0o770, "other users may replace files in"),
    ],
)
def test_a_socket_that_cannot_be_made_or_trusted_is_an_error(tmp_path: Path, name: str, mode: int, message: str):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("mine")
    (folder / "link").symlink_to(folder / "file")
    folder.chmod(mode)
    with pytest.raises(NotPossible, match=message):
        listen_at(folder / name)
    assert (folder / "file").read_text() == "mine"

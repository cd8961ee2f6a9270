"""Pods agree on their group before they start, despite strangers, latecomers and peers that disconnect early."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time

import pytest

from paddlejob.launch import rendezvous as rendezvous_module
from paddlejob.launch.group import Group
from paddlejob.launch.rendezvous import Connection, Listener, RendezvousFailed, rendezvous, require_free_ports

_networks = itertools.count(os.getpid() * 5)
PORT = 7168


@pytest.fixture
def addresses() -> tuple[str, ...]:
    number = next(_networks)
    return tuple(f"127.{70 + number // 250 % 40}.{number % 250}.{host}" for host in (9, 10, 11))


class Attempt:
    """One pod's attempt at a rendezvous, in a thread of its own."""

    def __init__(self, group: Group) -> None:
        self.connections: dict[int, Connection] = {}
        self.error = ""
        self._thread = threading.Thread(target=self._run, args=(group,))
        self._thread.start()

    def _run(self, group: Group) -> None:
        try:
            self.connections = rendezvous(group, PORT, time.monotonic() + 30)
        except RendezvousFailed as error:
            self.error = str(error)

    def join(self) -> Attempt:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


def connect(address: str) -> socket.socket:
    """A connection to rank 0, as soon as it listens."""
    for _ in range(500):
        sock = socket.socket()
        if sock.connect_ex((address, PORT)) == 0:
            return sock
        sock.close()
        time.sleep(0.02)
    raise AssertionError(f"nothing listens on {address}")


def hello(group: Group) -> Connection:
    connection = Connection(connect(group.addresses[0]))
    connection.send(f"hello {group.digest} {group.rank}")
    return connection


def closed(connection: Connection) -> bool:
    return connection.read(30) == ""


def test_all_pods_start_when_the_last_one_has_connected(addresses: tuple[str, ...]):
    first = Attempt(Group(addresses, 0))
    others = [hello(Group(addresses, rank)) for rank in (1, 2)]
    assert [other.read(30) for other in others] == ["start", "start"]
    assert sorted(first.join().connections) == [1, 2]
    first.close()


def test_a_pod_that_sees_another_group_is_rejected(addresses: tuple[str, ...]):
    """Such as a pod of the previous group that has not noticed its end yet."""
    first, second, third = addresses
    current, previous = (first, second), (first, third)
    accepting = Attempt(Group(current, 0))
    assert closed(hello(Group(previous, 1)))
    assert Attempt(Group(previous, 1)).join().error.startswith(f"{first} sees a different group")
    assert hello(Group(current, 1)).read(30) == "start"
    accepting.join().close()


def test_a_pod_that_dies_during_the_rendezvous_is_awaited_again(addresses: tuple[str, ...]):
    first = Attempt(Group(addresses, 0))
    hello(Group(addresses, 1)).close()
    third = hello(Group(addresses, 2))
    again = hello(Group(addresses, 1))
    assert [third.read(30), again.read(30)] == ["start", "start"]
    connections = first.join().connections
    connections[1].send("still there?")
    assert again.read(30) == "still there?", "the connection is that of the living pod"
    first.close()


def test_no_pod_starts_when_the_last_one_disconnects_at_once(addresses: tuple[str, ...]):
    group = Group(addresses[:2], 0)
    with socket.create_server((addresses[0], PORT)) as sock:
        hello(Group(addresses[:2], 1)).close()
        listener = Listener(group, sock)
        assert not listener.wait(time.monotonic() + 0.3)
        assert listener.missing == [addresses[1]]
        listener.close()


def test_of_two_connections_of_one_pod_the_later_one_is_kept(addresses: tuple[str, ...]):
    first = Attempt(Group(addresses, 0))
    before, again = hello(Group(addresses, 1)), hello(Group(addresses, 1))
    assert closed(before)
    third = hello(Group(addresses, 2))
    assert [third.read(30), again.read(30)] == ["start", "start"]
    first.join().close()


def test_silent_connections_delay_no_pod(addresses: tuple[str, ...]):
    """A half-open connection of a lost node, or a port scanner."""
    first = Attempt(Group(addresses, 0))
    silent = [connect(addresses[0]) for _ in range(20)]
    others = [hello(Group(addresses, rank)) for rank in (1, 2)]
    assert [other.read(30) for other in others] == ["start", "start"]
    assert first.join().error == ""
    assert all(sock.recv(10) == b"" for sock in silent), "they are closed"
    first.close()


@pytest.mark.parametrize(
    "message", ["hello DIGEST 3", "hello DIGEST 0", "hello DIGEST x", "hello DIGEST", "GET / HTTP"]
)
def test_a_stranger_is_disconnected(message: str, addresses: tuple[str, ...]):
    first = Attempt(Group(addresses, 0))
    stranger = Connection(connect(addresses[0]))
    stranger.send(message.replace("DIGEST", Group(addresses, 0).digest))
    assert closed(stranger)
    others = [hello(Group(addresses, rank)) for rank in (1, 2)]
    assert [other.read(30) for other in others] == ["start", "start"]
    first.join().close()


def test_missing_pods_are_named(addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rendezvous_module, "RENDEZVOUS_SECONDS", 0.5)
    first = Attempt(Group(addresses, 0))
    second = hello(Group(addresses, 1))
    error = first.join().error
    assert error == f"no connection from {addresses[2]} on port {PORT}, which must be open between the pods"
    assert closed(second), "the pod that connected discovers again"


def test_waiting_for_a_first_pod_that_falls_silent_has_an_end(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    """Its node is lost after it accepted the connection: nothing more arrives, not even a FIN."""
    monkeypatch.setattr(rendezvous_module, "RENDEZVOUS_SECONDS", 0.2)
    monkeypatch.setattr(rendezvous_module, "CONNECT_SECONDS", 0.2)
    with socket.create_server((addresses[0], PORT)) as sock:
        joining = Attempt(Group(addresses, 1))
        accepted, _ = sock.accept()
        assert joining.join().error.endswith("or is still waiting for other pods")
        accepted.close()


def test_the_first_pod_reports_a_port_it_cannot_listen_on(addresses: tuple[str, ...]):
    with socket.create_server((addresses[0], PORT)):
        error = Attempt(Group(addresses, 0)).join().error
    assert error == f"cannot listen on {addresses[0]}, port {PORT} (Address already in use)"


def test_server_ports_in_use_are_named(addresses: tuple[str, ...]):
    with socket.create_server((addresses[0], 7165)), socket.create_server((addresses[0], 7167)):
        with pytest.raises(RendezvousFailed, match=rf"port 7165, 7167 of this pod \({addresses[0]}\) is in use"):
            require_free_ports(addresses[0], range(7164, 7168))
        require_free_ports(addresses[1], range(7164, 7168))
    require_free_ports(addresses[0], range(7164, 7168))


def test_ipv6_addresses_work_as_well():
    if not _has_ipv6():
        pytest.skip("no IPv6 here")
    with pytest.raises(RendezvousFailed, match="no connection from ::2"):
        rendezvous(Group(("::1", "::2"), 0), PORT, time.monotonic() + 0.2)


def test_a_job_of_one_pod_needs_no_rendezvous(addresses: tuple[str, ...]):
    assert rendezvous(Group(addresses[:1], 0), PORT, time.monotonic()) == {}


def _has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
        return True

"""Pods meet before they start, whoever else knocks, comes too late or goes too early."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time

import pytest

from paddlejob.launch import meeting
from paddlejob.launch.group import Group
from paddlejob.launch.meeting import Door, Line, NotMet, meet, refuse_taken_ports

_networks = itertools.count(os.getpid() * 5)
PORT = 7168


@pytest.fixture
def addresses() -> tuple[str, ...]:
    number = next(_networks)
    return tuple(f"127.{70 + number // 250 % 40}.{number % 250}.{host}" for host in (9, 10, 11))


class Meeting:
    """One pod's try to meet the others, in a thread of its own."""

    def __init__(self, group: Group) -> None:
        self.lines: dict[int, Line] = {}
        self.reason = ""
        self._thread = threading.Thread(target=self._meet, args=(group,))
        self._thread.start()

    def _meet(self, group: Group) -> None:
        try:
            self.lines = meet(group, PORT, time.monotonic() + 30)
        except NotMet as reason:
            self.reason = str(reason)

    def over(self) -> Meeting:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self

    def close(self) -> None:
        for line in self.lines.values():
            line.close()


def knock(address: str) -> socket.socket:
    """A connection to the first pod, as soon as it listens."""
    for _ in range(500):
        connection = socket.socket()
        if connection.connect_ex((address, PORT)) == 0:
            return connection
        connection.close()
        time.sleep(0.02)
    raise AssertionError(f"nobody listens at {address}")


def hello(group: Group) -> Line:
    line = Line(knock(group.addresses[0]))
    line.send(f"hello {group.digest} {group.rank}")
    return line


def closed(line: Line) -> bool:
    return line.read(30) == ""


def test_all_are_let_go_when_the_last_has_come(addresses: tuple[str, ...]):
    first = Meeting(Group(addresses, 0))
    others = [hello(Group(addresses, rank)) for rank in (1, 2)]
    assert [other.read(30) for other in others] == ["go", "go"]
    assert sorted(first.over().lines) == [1, 2]
    first.close()


def test_one_that_sees_another_group_is_not_let_in(addresses: tuple[str, ...]):
    """As a pod of the group before, which is slow to notice that it has ended."""
    first, second, third = addresses
    now, before = (first, second), (first, third)
    gathering = Meeting(Group(now, 0))
    assert closed(hello(Group(before, 1)))
    assert Meeting(Group(before, 1)).over().reason.startswith(f"{first} sees other pods than this one does")
    assert hello(Group(now, 1)).read(30) == "go"
    gathering.over().close()


def test_one_that_dies_in_the_middle_of_the_meeting_is_waited_for_again(addresses: tuple[str, ...]):
    first = Meeting(Group(addresses, 0))
    hello(Group(addresses, 1)).close()
    third = hello(Group(addresses, 2))
    again = hello(Group(addresses, 1))
    assert [third.read(30), again.read(30)] == ["go", "go"]
    lines = first.over().lines
    lines[1].send("still there?")
    assert again.read(30) == "still there?", "the line is that of the one that lives"
    first.close()


def test_nobody_is_let_go_when_the_last_to_come_is_gone_at_once(addresses: tuple[str, ...]):
    group = Group(addresses[:2], 0)
    with socket.create_server((addresses[0], PORT)) as listener:
        hello(Group(addresses[:2], 1)).close()
        door = Door(group, listener)
        assert not door.wait(time.monotonic() + 0.3)
        assert door.missing == [addresses[1]]
        door.close()


def test_one_that_comes_twice_is_met_where_it_came_last(addresses: tuple[str, ...]):
    first = Meeting(Group(addresses, 0))
    before, again = hello(Group(addresses, 1)), hello(Group(addresses, 1))
    assert closed(before)
    third = hello(Group(addresses, 2))
    assert [third.read(30), again.read(30)] == ["go", "go"]
    first.over().close()


def test_those_who_come_and_say_nothing_hold_up_nobody(addresses: tuple[str, ...]):
    """Half a connection of a node that was lost, or a scanner of ports."""
    first = Meeting(Group(addresses, 0))
    silent = [knock(addresses[0]) for _ in range(20)]
    others = [hello(Group(addresses, rank)) for rank in (1, 2)]
    assert [other.read(30) for other in others] == ["go", "go"]
    assert first.over().reason == ""
    assert all(one.recv(10) == b"" for one in silent), "they are sent away"
    first.close()


@pytest.mark.parametrize("words", ["hello DIGEST 3", "hello DIGEST 0", "hello DIGEST x", "hello DIGEST", "GET / HTTP"])
def test_one_that_is_no_pod_of_the_group_is_sent_away(words: str, addresses: tuple[str, ...]):
    first = Meeting(Group(addresses, 0))
    stranger = Line(knock(addresses[0]))
    stranger.send(words.replace("DIGEST", Group(addresses, 0).digest))
    assert closed(stranger)
    others = [hello(Group(addresses, rank)) for rank in (1, 2)]
    assert [other.read(30) for other in others] == ["go", "go"]
    first.over().close()


def test_those_who_do_not_come_are_named(addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(meeting, "WINDOW_SECONDS", 0.5)
    first = Meeting(Group(addresses, 0))
    second = hello(Group(addresses, 1))
    reason = first.over().reason
    assert reason == f"no word from {addresses[2]} at port {PORT}, which must be open between the pods"
    assert closed(second), "the one that came looks again"


def test_a_first_pod_that_falls_silent_is_not_waited_for_without_end(
    addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    """Its node is lost after it took the connection: nothing more comes from it, not even an end."""
    monkeypatch.setattr(meeting, "WINDOW_SECONDS", 0.2)
    monkeypatch.setattr(meeting, "CONNECT_SECONDS", 0.2)
    with socket.create_server((addresses[0], PORT)) as listener:
        joining = Meeting(Group(addresses, 1))
        connection, _ = listener.accept()
        assert joining.over().reason.endswith("or waits for some as well")
        connection.close()


def test_the_first_pod_says_where_it_cannot_listen(addresses: tuple[str, ...]):
    with socket.create_server((addresses[0], PORT)):
        reason = Meeting(Group(addresses, 0)).over().reason
    assert reason == f"this pod cannot listen at {addresses[0]}, port {PORT} (Address already in use)"


def test_a_port_of_a_server_that_is_taken_is_named(addresses: tuple[str, ...]):
    with socket.create_server((addresses[0], 7165)), socket.create_server((addresses[0], 7167)):
        with pytest.raises(NotMet, match=rf"port 7165, 7167 of this pod \({addresses[0]}\) is taken"):
            refuse_taken_ports(addresses[0], range(7164, 7168))
        refuse_taken_ports(addresses[1], range(7164, 7168))
    refuse_taken_ports(addresses[0], range(7164, 7168))


def test_addresses_of_the_new_kind_meet_as_well():
    if not _has_ipv6():
        pytest.skip("no IPv6 here")
    with pytest.raises(NotMet, match="no word from ::2"):
        meet(Group(("::1", "::2"), 0), PORT, time.monotonic() + 0.2)


def test_a_job_of_one_pod_meets_nobody(addresses: tuple[str, ...]):
    assert meet(Group(addresses[:1], 0), PORT, time.monotonic()) == {}


def _has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
        return True

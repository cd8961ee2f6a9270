"""Pods meet before they start, hear of each other's end, and miss those that are silent."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch import link as link_module
from paddlejob.launch.events import AllEnded, PeerLost
from paddlejob.launch.group import Group
from paddlejob.launch.link import Link
from paddlejob.launch.meeting import NotMet, meet

_networks = itertools.count(os.getpid() * 5)
PORT = 7168


@pytest.fixture
def addresses() -> tuple[str, ...]:
    number = next(_networks)
    return tuple(f"127.{70 + number // 250 % 40}.{number % 250}.{host}" for host in (9, 10, 11))


class Pods:
    """Each of a group in a thread of its own."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self.events: list[SimpleQueue[Any]] = [SimpleQueue() for _ in addresses]
        self.links: dict[int, Link] = {}
        threads = [
            threading.Thread(target=self._join, args=(Group(addresses, rank),)) for rank in range(len(addresses))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(self.links) == len(addresses)

    def _join(self, group: Group) -> None:
        deadline = time.monotonic() + 50
        while True:
            try:
                lines = meet(group, PORT, deadline)
            except NotMet:
                time.sleep(0.05)
                continue
            self.links[group.rank] = Link(group, lines, self.events[group.rank].put)
            return

    def told(self, rank: int) -> Any:
        return self.events[rank].get(timeout=30)

    def close(self) -> None:
        for link in self.links.values():
            link.close()


def test_all_hear_of_the_end_when_the_last_has_ended_and_not_before(addresses: tuple[str, ...]):
    pods = Pods(addresses)
    for rank in (0, 2):
        pods.links[rank].ended_well()
    time.sleep(0.3)
    assert all(events.empty() for events in pods.events)
    pods.links[1].ended_well()
    assert [pods.told(rank) for rank in range(3)] == [AllEnded()] * 3
    pods.close()


def test_the_reason_of_one_that_gives_up_reaches_all_others(addresses: tuple[str, ...]):
    pods = Pods(addresses)
    pods.links[1].give_up("trainer 1 failed with status 3")
    assert pods.told(0) == pods.told(2) == PeerLost("trainer 1 failed with status 3")
    pods.close()


def test_a_broken_connection_is_a_pod_that_is_gone(addresses: tuple[str, ...]):
    pods = Pods(addresses)
    pods.links[2].close()
    gone = PeerLost(f"trainer 2 ({addresses[2]}) is gone")
    assert (pods.told(0), pods.told(1)) == (gone, gone)
    pods.close()


def test_a_pod_that_is_silent_for_too_long_is_gone(addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_module, "SILENCE_SECONDS", 0.5)
    pods = Pods(addresses)
    assert "is gone" in pods.told(0).words
    pods.close()


def test_one_that_sees_another_group_is_not_let_in(addresses: tuple[str, ...]):
    first, second, third = addresses
    outcome: list[str] = []

    def gather() -> None:
        try:
            meet(Group((first, second), 0), PORT, time.monotonic() + 5)
        except NotMet as reason:
            outcome.append(str(reason))

    thread = threading.Thread(target=gather)
    thread.start()
    with pytest.raises(NotMet):
        for _ in range(100):
            time.sleep(0.02)
            if socket.socket().connect_ex((first, PORT)) == 0:
                meet(Group((first, third), 1), PORT, time.monotonic() + 5)
    thread.join(30)
    assert outcome and second in outcome[0]


def test_a_job_of_one_pod_meets_nobody(addresses: tuple[str, ...]):
    assert meet(Group(addresses[:1], 0), PORT, time.monotonic()) == {}

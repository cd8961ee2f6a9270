"""Pods that train together hear of each other's end, and miss those that are gone or silent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch import link as link_module
from paddlejob.launch.events import AllEnded, PeerLost
from paddlejob.launch.group import Group
from paddlejob.launch.link import Link
from paddlejob.launch.meeting import Line

ADDRESSES = ("10.0.0.9", "10.0.0.10", "10.0.0.11")


class Pods:
    """Three that have met: the first has a line to each of the others."""

    def __init__(self, first_hears: Callable[[Any], None] | None = None) -> None:
        self.events: list[SimpleQueue[Any]] = [SimpleQueue() for _ in ADDRESSES]
        ends = {rank: socket.socketpair() for rank in (1, 2)}
        lines = [{rank: Line(pair[0]) for rank, pair in ends.items()}, *({0: Line(ends[rank][1])} for rank in (1, 2))]
        hear = [first_hears or self.events[0].put, self.events[1].put, self.events[2].put]
        self.links = [Link(Group(ADDRESSES, rank), lines[rank], hear[rank]) for rank in range(3)]

    def told(self, rank: int) -> Any:
        return self.events[rank].get(timeout=30)

    def close(self) -> None:
        for link in reversed(self.links):
            link.close()


@pytest.fixture
def pods() -> Iterator[Pods]:
    opened = Pods()
    yield opened
    opened.close()


def test_all_hear_of_the_end_when_the_last_has_ended_and_not_before(pods: Pods):
    for rank in (0, 2):
        pods.links[rank].ended_well()
    time.sleep(0.3)
    assert all(events.empty() for events in pods.events)
    pods.links[1].ended_well()
    assert [pods.told(rank) for rank in range(3)] == [AllEnded()] * 3


def test_the_first_pod_stays_until_the_others_have_heard_of_the_end(pods: Pods):
    for link in pods.links:
        link.ended_well()
    assert pods.told(0) == AllEnded()
    leaving = threading.Thread(target=pods.links[0].close)
    leaving.start()
    for rank in (1, 2):
        assert pods.told(rank) == AllEnded()
        leaving.join(0.3)
        assert leaving.is_alive()
        pods.links[rank].close()
    leaving.join(30)
    assert not leaving.is_alive()


def test_the_reason_of_one_that_gives_up_reaches_all_others(pods: Pods):
    pods.links[1].give_up("trainer 1 failed with status 3")
    assert pods.told(0) == pods.told(2) == PeerLost("trainer 1 failed with status 3")


def test_the_first_pod_passes_a_reason_on_before_it_ends_itself():
    pods = Pods(first_hears=lambda event: pods.links[0].close())
    pods.links[1].give_up("trainer 1 failed with status 3")
    assert pods.told(2) == PeerLost("trainer 1 failed with status 3"), "not that the first is gone"
    pods.close()


def test_a_reason_of_many_words_is_cut_and_does_not_break_the_line(pods: Pods):
    pods.links[2].give_up("é" * 100_000)
    first, second = pods.told(0), pods.told(1)
    assert set(first.words) == set(second.words) == {"é"}
    assert len(second.words) > 1000


def test_a_broken_connection_is_a_pod_that_is_gone(pods: Pods):
    pods.links[2].close()
    gone = PeerLost("trainer 2 (10.0.0.11) is gone")
    assert (pods.told(0), pods.told(1)) == (gone, gone)


def test_a_pod_that_is_silent_for_too_long_is_gone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_module, "SILENCE_SECONDS", 0.5)
    pods = Pods()
    assert "is gone" in pods.told(0).words
    pods.close()


def test_pods_that_train_for_long_keep_saying_that_they_are_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_module, "SILENCE_SECONDS", 2.0)
    monkeypatch.setattr(link_module, "ALIVE_SECONDS", 0.1)
    pods = Pods()
    time.sleep(4)
    assert all(events.empty() for events in pods.events)
    pods.close()

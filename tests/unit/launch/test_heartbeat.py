"""Pods that train together learn of each other's success or failure, and notice peers that are lost or silent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from paddlejob.launch import heartbeat as heartbeat_module
from paddlejob.launch.events import AllSucceeded, PeerLost
from paddlejob.launch.group import Group
from paddlejob.launch.heartbeat import Heartbeat
from paddlejob.launch.rendezvous import Connection

ADDRESSES = ("10.0.0.9", "10.0.0.10", "10.0.0.11")


class Pods:
    """Three pods after the rendezvous: the first has a connection to each of the others."""

    def __init__(self, emit_first: Callable[[Any], None] | None = None) -> None:
        self.events: list[SimpleQueue[Any]] = [SimpleQueue() for _ in ADDRESSES]
        pairs = {rank: socket.socketpair() for rank in (1, 2)}
        connections = [
            {rank: Connection(pair[0]) for rank, pair in pairs.items()},
            *({0: Connection(pairs[rank][1])} for rank in (1, 2)),
        ]
        emit = [emit_first or self.events[0].put, self.events[1].put, self.events[2].put]
        self.heartbeats = [Heartbeat(Group(ADDRESSES, rank), connections[rank], emit[rank]) for rank in range(3)]

    def event(self, rank: int) -> Any:
        return self.events[rank].get(timeout=30)

    def close(self) -> None:
        for heartbeat in reversed(self.heartbeats):
            heartbeat.close()


@pytest.fixture
def pods() -> Iterator[Pods]:
    opened = Pods()
    yield opened
    opened.close()


def test_all_learn_of_the_success_when_the_last_trainer_has_succeeded_and_not_before(pods: Pods):
    for rank in (0, 2):
        pods.heartbeats[rank].report_success()
    time.sleep(0.3)
    assert all(events.empty() for events in pods.events)
    pods.heartbeats[1].report_success()
    assert [pods.event(rank) for rank in range(3)] == [AllSucceeded()] * 3


def test_the_first_pod_stays_until_the_others_have_learned_of_the_success(pods: Pods):
    for heartbeat in pods.heartbeats:
        heartbeat.report_success()
    assert pods.event(0) == AllSucceeded()
    closing = threading.Thread(target=pods.heartbeats[0].close)
    closing.start()
    for rank in (1, 2):
        assert pods.event(rank) == AllSucceeded()
        closing.join(0.3)
        assert closing.is_alive()
        pods.heartbeats[rank].close()
    closing.join(30)
    assert not closing.is_alive()


def test_the_message_of_a_pod_that_fails_reaches_all_others(pods: Pods):
    pods.heartbeats[1].report_failure("trainer 1 failed with exit code 3")
    assert pods.event(0) == pods.event(2) == PeerLost("trainer 1 failed with exit code 3")


def test_the_first_pod_forwards_a_message_before_it_exits_itself():
    exited = threading.Event()

    def exit_at_once(event: Any) -> None:
        pods.heartbeats[0].close()
        exited.set()

    pods = Pods(emit_first=exit_at_once)
    pods.heartbeats[1].report_failure("trainer 1 failed with exit code 3")
    assert pods.event(2) == PeerLost("trainer 1 failed with exit code 3"), "not that the first is lost"
    assert exited.wait(30), "closing it once more, while it closes itself, would make its thread wait for itself"
    pods.close()


def test_a_long_message_is_cut_and_does_not_break_the_connection(pods: Pods):
    pods.heartbeats[2].report_failure("é" * 100_000)
    first, second = pods.event(0), pods.event(1)
    assert set(first.message) == set(second.message) == {"é"}
    assert len(second.message) > 1000


def test_a_broken_connection_means_that_the_pod_is_lost(pods: Pods):
    pods.heartbeats[2].close()
    lost = PeerLost("trainer 2 (10.0.0.11) is lost")
    assert (pods.event(0), pods.event(1)) == (lost, lost)


def test_a_pod_that_is_silent_for_too_long_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heartbeat_module, "TIMEOUT_SECONDS", 0.5)
    pods = Pods()
    assert "is lost" in pods.event(0).message
    pods.close()


def test_pods_that_train_for_long_keep_sending_heartbeats(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heartbeat_module, "TIMEOUT_SECONDS", 2.0)
    monkeypatch.setattr(heartbeat_module, "HEARTBEAT_SECONDS", 0.1)
    pods = Pods()
    time.sleep(4)
    assert all(events.empty() for events in pods.events)
    pods.close()

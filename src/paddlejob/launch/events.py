"""The events of a running group; all of them arrive in one queue."""

from __future__ import annotations

from typing import NamedTuple


class TrainerExited(NamedTuple):
    exit_code: int


class ServerExited(NamedTuple):
    exit_code: int


class PeerLost(NamedTuple):
    message: str


class AllSucceeded(NamedTuple):
    """Every trainer of the group has exited with code 0."""


class SignalReceived(NamedTuple):
    number: int

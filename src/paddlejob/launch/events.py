"""What can happen while a group trains. All of it arrives in one queue."""

from __future__ import annotations

from typing import NamedTuple


class TrainerEnded(NamedTuple):
    status: int


class ServerEnded(NamedTuple):
    status: int


class PeerLost(NamedTuple):
    words: str


class AllEnded(NamedTuple):
    """Every trainer of the group has ended well."""


class Signalled(NamedTuple):
    number: int

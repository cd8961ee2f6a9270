"""How often each replica's pod was replaced alone in the current attempt, as the status keeps it: ps-0:1,worker-3:2."""

from __future__ import annotations

from collections.abc import Mapping

from paddlejob.api.types import Role, Slot


def format(counts: Mapping[Slot, int]) -> str:
    return ",".join(f"{role}-{index}:{count}" for (role, index), count in counts.items())


def parse(text: str) -> dict[Slot, int]:
    found: dict[Slot, int] = {}
    for part in filter(None, text.split(",")):
        replica, _, count = part.partition(":")
        role, _, index = replica.partition("-")
        found[Role(role), int(index)] = int(count)
    return found

"""How often each replica's pod was replaced alone in the current attempt, as the status keeps it: ps-0:1,worker-3:2.

A + behind the number marks a replica that joins a running attempt and whose pod was not seen yet: worker-3:2+. Without
it, a pod that is missing was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paddlejob.api.types import Role, Slot

JOINING = "+"
ORDER = list(Role)


def format(counts: Mapping[Slot, int], joining: Collection[Slot] = ()) -> str:
    ordered = sorted(counts, key=lambda slot: (ORDER.index(slot[0]), slot[1]))
    return ",".join(f"{role}-{i}:{counts[role, i]}{JOINING if (role, i) in joining else ''}" for role, i in ordered)


def parse(text: str) -> dict[Slot, int]:
    return {slot: int(count.rstrip(JOINING)) for slot, count in _entries(text).items()}


def parse_joining(text: str) -> frozenset[Slot]:
    return frozenset(slot for slot, count in _entries(text).items() if count.endswith(JOINING))


def _entries(text: str) -> dict[Slot, str]:
    found: dict[Slot, str] = {}
    for part in filter(None, text.split(",")):
        replica, _, count = part.partition(":")
        role, _, index = replica.partition("-")
        found[Role(role), int(index)] = count
    return found

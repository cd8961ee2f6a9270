"""What a cache knows: digests of objects by name and by index, which never go back in time."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from paddlejob.kube.resource import Object

T = TypeVar("T")
Key = tuple[str, str]

# Longer than any answer to an own request can be late.
GRAVE_SECONDS = 300.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    value: T
    uid: str
    version: int
    index_keys: tuple[Hashable, ...]


class Store(Generic[T]):
    """Digests of objects, by (namespace, name) and by whatever `index` says of them.

    Three sources write here in any order: a list, a watch, and the answers to our own writes. The resource
    version decides, so an older state never replaces a newer one, and what was deleted stays deleted.
    """

    def __init__(self, digest: Callable[[Object], T], index: Callable[[T], Iterable[Hashable]]) -> None:
        self._digest = digest
        self._index = index
        self._entries: dict[Key, Entry[T]] = {}
        self._indexed: dict[Hashable, dict[Key, T]] = {}
        self._graves: dict[str, tuple[float, float]] = {}
        self._listeners: list[Callable[[T | None, T | None], None]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter([entry.value for entry in self._entries.values()])

    def get(self, namespace: str, name: str) -> T | None:
        entry = self._entries.get((namespace, name))
        return None if entry is None else entry.value

    def having(self, index_key: Hashable) -> list[T]:
        """The objects of which `index` gave this key."""
        return list(self._indexed.get(index_key, {}).values())

    def on_change(self, listener: Callable[[T | None, T | None], None]) -> None:
        """Call `listener(old, new)` on every change; None stands for not being there."""
        self._listeners.append(listener)

    def put(self, obj: Object) -> None:
        """Take in a state of an object, unless a newer one is known."""
        metadata = obj["metadata"]
        key, uid, version = key_of(obj), metadata["uid"], int(metadata["resourceVersion"])
        known = self._entries.get(key)
        if (known and known.version >= version) or self._is_buried(uid, version):
            return
        try:
            value = self._digest(obj)
            entry = Entry(value, uid, version, tuple(self._index(value)))
        except Exception:
            log.exception("%s/%s: left out, as its content cannot be read", *key)
            return
        self._set(key, known, entry)

    def remove(self, key: Key, uid: str, version: float = math.inf) -> None:
        """Note that the object with this UID was gone at `version`; without one, for good."""
        self._bury(uid, version)
        known = self._entries.get(key)
        if known and known.uid == uid:
            self._set(key, known, None)

    def keep_only(self, listed: set[Key], version: int) -> None:
        """Drop what a list taken at `version` did not have, except what is newer than the list."""
        gone = [k for k, entry in self._entries.items() if k not in listed and entry.version <= version]
        for key in gone:
            self._set(key, self._entries[key], None)

    def clear(self) -> None:
        for key, entry in list(self._entries.items()):
            self._set(key, entry, None)

    def forget_versions(self) -> None:
        """Let any state in: the server's history began anew, as after a restore from a backup."""
        self._graves.clear()
        self._entries = {
            key: Entry(entry.value, entry.uid, -1, entry.index_keys) for key, entry in self._entries.items()
        }

    def _set(self, key: Key, known: Entry[T] | None, entry: Entry[T] | None) -> None:
        if known:
            self._unindex(key, known)
        if entry:
            self._entries[key] = entry
            for index_key in entry.index_keys:
                self._indexed.setdefault(index_key, {})[key] = entry.value
        else:
            self._entries.pop(key, None)
        self._tell(known.value if known else None, entry.value if entry else None)

    def _unindex(self, key: Key, entry: Entry[T]) -> None:
        for index_key in entry.index_keys:
            members = self._indexed[index_key]
            members.pop(key, None)
            if not members:
                del self._indexed[index_key]

    def _tell(self, old: T | None, new: T | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:
                log.exception("a listener failed on a change; it may have missed it")

    def _is_buried(self, uid: str, version: int) -> bool:
        grave = self._graves.get(uid)
        return grave is not None and version <= grave[0]

    def _bury(self, uid: str, version: float) -> None:
        now = time.monotonic()
        known = self._graves.pop(uid, (0.0, 0.0))[0]
        self._graves[uid] = (max(known, version), now)
        # Insertion order is age order, so the old ones are in front.
        for oldest in list(itertools.islice(self._graves, 2)):
            if now - self._graves[oldest][1] > GRAVE_SECONDS:
                del self._graves[oldest]


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]

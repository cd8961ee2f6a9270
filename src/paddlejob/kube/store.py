"""The store of an informer: transformed objects by name and by index, which never go back in time."""

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
"""Namespace and name of an object."""
EventHandler = Callable[[T | None, T | None], None]
"""Called with the old and the new value."""

# Longer than a response to a request of our own can be late.
TOMBSTONE_SECONDS = 300.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    value: T
    uid: str
    version: int
    index_keys: tuple[Hashable, ...]


class Store(Generic[T]):
    """What `transform` makes of objects, by (namespace, name) and by the keys that `index` returns for them.

    Three sources write here in any order: a list, a watch, and the responses to our own writes. The resource version
    decides, so an older state never replaces a newer one, and a deleted object stays deleted.
    """

    def __init__(self, transform: Callable[[Object], T], index: Callable[[T], Iterable[Hashable]]) -> None:
        self._transform = transform
        self._index = index
        self._entries: dict[Key, Entry[T]] = {}
        self._indexed: dict[Hashable, dict[Key, T]] = {}
        self._tombstones: dict[str, tuple[float, float]] = {}
        """By uid: the version up to which the object is deleted, and when that was recorded."""
        self._handlers: list[EventHandler[T]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter([entry.value for entry in self._entries.values()])

    def get(self, namespace: str, name: str) -> T | None:
        entry = self._entries.get((namespace, name))
        return None if entry is None else entry.value

    def by_index(self, index_key: Hashable) -> list[T]:
        """The objects for which `index` returned this key."""
        return list(self._indexed.get(index_key, {}).values())

    def add_event_handler(self, handler: EventHandler[T]) -> None:
        """Call `handler(old, new)` on every change; `old` is None for a new object, `new` for a deleted one."""
        self._handlers.append(handler)

    def put(self, obj: Object) -> None:
        """Store a state of an object, unless a newer one is known."""
        metadata = obj["metadata"]
        key, uid, version = key_of(obj), metadata["uid"], int(metadata["resourceVersion"])
        known = self._entries.get(key)
        if (known and known.version >= version) or self._is_deleted(uid, version):
            return
        try:
            value = self._transform(obj)
            entry = Entry(value, uid, version, tuple(self._index(value)))
        except Exception:
            log.exception("%s/%s: ignored, because it cannot be read", *key)
            return
        self._set(key, known, entry)

    def remove(self, key: Key, uid: str, version: float = math.inf) -> None:
        """Remove the object with this uid, which was gone at `version`; without a version, it never comes back."""
        self._add_tombstone(uid, version)
        known = self._entries.get(key)
        if known and known.uid == uid:
            self._set(key, known, None)

    def prune(self, listed: set[Key], version: int) -> None:
        """Remove the objects that a list taken at `version` does not contain, except those newer than the list."""
        gone = [k for k, entry in self._entries.items() if k not in listed and entry.version <= version]
        for key in gone:
            self._set(key, self._entries[key], None)

    def clear(self) -> None:
        for key, entry in list(self._entries.items()):
            self._set(key, entry, None)

    def reset_versions(self) -> None:
        """Accept any state from now on: resource versions start again after a restore from a backup."""
        self._tombstones.clear()
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
        self._notify(known.value if known else None, entry.value if entry else None)

    def _unindex(self, key: Key, entry: Entry[T]) -> None:
        for index_key in entry.index_keys:
            members = self._indexed[index_key]
            members.pop(key, None)
            if not members:
                del self._indexed[index_key]

    def _notify(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                log.exception("an event handler failed and may have missed a change")

    def _is_deleted(self, uid: str, version: int) -> bool:
        tombstone = self._tombstones.get(uid)
        return tombstone is not None and version <= tombstone[0]

    def _add_tombstone(self, uid: str, version: float) -> None:
        now = time.monotonic()
        known = self._tombstones.pop(uid, (0.0, 0.0))[0]
        self._tombstones[uid] = (max(known, version), now)
        # Insertion order is age order, so the oldest come first.
        for oldest in list(itertools.islice(self._tombstones, 2)):
            if now - self._tombstones[oldest][1] > TOMBSTONE_SECONDS:
                del self._tombstones[oldest]


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]

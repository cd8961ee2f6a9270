"""An informer: a local copy of what the API server holds, kept current by list and watch."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import aclosing
from typing import Generic, TypeVar

from paddlejob.errors import ApiError, Gone, KubeError, NotFound, Overloaded
from paddlejob.kube.client import Change, Client
from paddlejob.kube.resource import Object, Resource
from paddlejob.kube.store import Key, Store, key_of

T = TypeVar("T")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
ABSENT_PAUSE = 30.0
WATCH_SECONDS = 300
# With 2000 pods of 6 KB the process peaks at 106 MiB in pages of 500, at 53 MiB in pages of 100, and is faster.
PAGE = 100

log = logging.getLogger(__name__)


class Cache(Generic[T]):
    """Objects of one resource, each cut down by `digest`; `run()` keeps them current until it is cancelled.

    `index` gives the keys under which `having` finds an object. The raw objects are not kept.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        digest: Callable[[Object], T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        index: Callable[[T], Iterable[Hashable]] = lambda value: (),
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        """Set once the first list is in, or once the resource is known to be absent."""
        self.absent = False
        """Whether the server has no such resource; it is asked again every 30 s."""
        self.reason = ""
        """Why there is no contact at the moment; empty while all is well."""
        self.last_contact = 0.0
        """The time.monotonic() of the last sign of life from the server."""
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._store = Store(digest, index)
        self._version = ""
        self._newest = "0"
        self._pause = FIRST_PAUSE

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[T]:
        return iter(self._store)

    def get(self, namespace: str, name: str) -> T | None:
        return self._store.get(namespace, name)

    def having(self, index_key: Hashable) -> list[T]:
        """The objects of which `index` gave this key."""
        return self._store.having(index_key)

    def on_change(self, listener: Callable[[T | None, T | None], None]) -> None:
        """Call `listener(old, new)` on every change; None stands for not being there."""
        self._store.on_change(listener)

    def learn(self, obj: Object) -> None:
        """Take in the answer to an own write, so that the next read sees it."""
        self._store.put(obj)

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """Note that the server no longer has the object with this UID."""
        self._store.remove((namespace, name), uid)

    async def run(self) -> None:
        """List, then watch, for ever; the only way out is to be cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                begun = time.monotonic()
                await self._watch()
                # A server that ends every watch at once must not be asked in a tight loop.
                if time.monotonic() - begun < 1.0:
                    await self._rest()
            except NotFound:
                await self._be_absent()
            except Gone:
                log.info("%s: the server no longer has the history we need; listing again", self.resource)
                self._version = ""
                await self._rest()
            except KubeError as fault:
                self._report(str(fault))
                if isinstance(fault, ApiError) and not isinstance(fault, Overloaded):
                    self._version = ""
                await self._rest()

    async def _list(self) -> None:
        listed: set[Key] = set()
        version = ""
        pages = self._client.pages(self.resource, self._namespace, label_selector=self._label_selector, size=PAGE)
        async for page in pages:
            if not version:
                self._notice_restore(int(page.version))
            version = page.version
            for obj in page.items:
                listed.add(key_of(obj))
                self._store.put(obj)
            self._in_contact()
        self._store.keep_only(listed, int(version))
        self._version = self._newest = version
        self.absent = False
        self.synced.set()

    def _notice_restore(self, version: int) -> None:
        if version < int(self._newest):
            log.warning("%s: the server's history went back; taking its list as it is", self.resource)
            self._store.forget_versions()

    async def _watch(self) -> None:
        seconds = random.randint(WATCH_SECONDS * 4 // 5, WATCH_SECONDS)
        changes = self._client.watch(
            self.resource,
            self._namespace,
            version=self._version,
            label_selector=self._label_selector,
            seconds=seconds,
            opened=self._in_contact,
        )
        async with aclosing(changes):
            async for change in changes:
                self._apply(change)
                self._pause = FIRST_PAUSE
                self._in_contact()

    def _apply(self, change: Change) -> None:
        metadata = change.object["metadata"]
        version = metadata["resourceVersion"]
        if change.type == "DELETED":
            self._store.remove(key_of(change.object), metadata["uid"], int(version))
        elif change.type != "BOOKMARK":
            self._store.put(change.object)
        self._version = self._newest = version

    async def _be_absent(self) -> None:
        """The resource's type is not installed (yet, or any more)."""
        if not self.absent:
            log.info("%s: not installed in this cluster; asking again every %g s", self.resource, ABSENT_PAUSE)
        self._in_contact()
        self._store.clear()
        self._version = ""
        self.absent = True
        self.synced.set()
        await asyncio.sleep(ABSENT_PAUSE)

    def _in_contact(self) -> None:
        if self.reason:
            log.info("%s: in contact again", self.resource)
        self.reason = ""
        self.last_contact = time.monotonic()

    def _report(self, trouble: str) -> None:
        if not self.reason:
            log.warning("%s: out of contact, trying again: %s", self.resource, trouble)
        self.reason = trouble

    async def _rest(self) -> None:
        await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

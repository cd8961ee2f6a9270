"""An informer: a local copy of the objects of one resource, kept current by list and watch."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Generic, TypeVar

from paddlejob.delays import exponential_delay
from paddlejob.errors import ApiError, Forbidden, Gone, KubeError, NotFound, Overloaded
from paddlejob.kube.client import Client, WatchEvent
from paddlejob.kube.resource import Object, Resource
from paddlejob.kube.store import EventHandler, Key, Store, key_of

T = TypeVar("T")

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
ABSENT_RETRY_SECONDS = 30.0
WATCH_SECONDS = 300
# With 2000 pods of 6 KB the process peaks at 106 MiB in pages of 500, at 53 MiB in pages of 100, and is faster.
PAGE = 100

log = logging.getLogger(__name__)


class Informer(Generic[T]):
    """Caches what `transform` makes of each object; `run()` keeps the cache current until it is cancelled.

    `index` returns the keys under which `by_index` finds an object. The raw objects are not kept. With `metadata_only`
    the server sends no more of an object than its metadata. Objects that `ignore` names are not stored. Only an
    `optional` resource may be missing from the server: a 404 for any other is an error of the server or of a load
    balancer in front of it, so the cache stays as it is. Of an optional resource the first of `versions` that is served
    is used.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        transform: Callable[[Object], T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        index: Callable[[T], Iterable[Hashable]] = lambda value: (),
        optional: bool = False,
        metadata_only: bool = False,
        ignore: Callable[[Object], bool] = lambda obj: False,
        versions: Sequence[str] = (),
    ) -> None:
        self.resource = resource
        """In the version that is used."""
        self.synced = asyncio.Event()
        """Set after the first list, or once an optional resource is known to be absent."""
        self.absent = False
        """Whether an optional resource is not served, or may not be read; the informer retries every 30 s."""
        self.last_error = ""
        """Why the cache is not current; empty while it is."""
        self.failing_since: float | None = None
        """The time.monotonic() of the first of the errors that still persist."""
        self.errors = 0
        """How many lists and watches have failed."""
        self.last_contact = 0.0
        """The time.monotonic() of the last response from the server."""
        self._client = client
        self._optional = optional
        self._metadata_only = metadata_only
        self._ignore = ignore
        self._versions = list(versions)
        self._untried = len(self._versions) - 1
        self._namespace = namespace
        self._label_selector = label_selector
        self._store = Store(transform, index)
        self._version = ""
        self._newest = "0"
        self._failures = 0

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[T]:
        return iter(self._store)

    def get(self, namespace: str, name: str) -> T | None:
        return self._store.get(namespace, name)

    def by_index(self, index_key: Hashable) -> list[T]:
        """The objects for which `index` returned this key."""
        return self._store.by_index(index_key)

    def add_event_handler(self, handler: EventHandler[T]) -> None:
        """Call `handler(old, new)` on every change; `old` is None for a new object, `new` for a deleted one."""
        self._store.add_event_handler(handler)

    def record_write(self, obj: Object) -> None:
        """Store the response to a write of our own, so that the next read sees it."""
        self._store.put(obj)

    def record_delete(self, namespace: str, name: str, uid: str) -> None:
        """Remove an object that we deleted, whatever the watch still says about this uid."""
        self._store.remove((namespace, name), uid)

    async def run(self) -> None:
        """List, then watch, until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                started = time.monotonic()
                await self._watch()
                # A server that ends every watch immediately must not be asked in a tight loop.
                if time.monotonic() - started < 1.0:
                    await self._back_off()
            except Gone:
                log.info("%s: the resource version is too old; listing again", self.resource)
                self._version = ""
                await self._back_off()
            except KubeError as error:
                await self._handle_error(error)

    async def _handle_error(self, error: KubeError) -> None:
        if self._optional and (isinstance(error, NotFound) or self._was_never_permitted(error)):
            if not self._try_another_version():
                await self._wait_until_installed(error)
            return
        self._contact_lost(str(error))
        if isinstance(error, ApiError) and not isinstance(error, Overloaded):
            self._version = ""
        await self._back_off()

    async def _list(self) -> None:
        try:
            await self._list_in_pages(PAGE)
        except Gone:
            # Pages that take longer than etcd keeps its history would expire every time.
            log.info("%s: the list expired between two pages; reading it in one page", self.resource)
            await self._list_in_pages(0)

    async def _list_in_pages(self, size: int) -> None:
        listed: set[Key] = set()
        version = ""
        pages = self._client.pages(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            size=size,
            metadata_only=self._metadata_only,
        )
        async for page in pages:
            if not version:
                self._detect_restore(int(page.version))
            version = page.version
            for obj in page.items:
                if not self._ignore(obj):
                    listed.add(key_of(obj))
                    self._store.put(obj)
            self._contact_made()
        self._store.prune(listed, int(version))
        self._version = self._newest = version
        self.absent = False
        self._untried = len(self._versions) - 1
        self.synced.set()

    def _detect_restore(self, version: int) -> None:
        if version < int(self._newest):
            log.warning("%s: the server's resource version went back; was etcd restored from a backup?", self.resource)
            self._store.reset_versions()

    async def _watch(self) -> None:
        events = self._client.watch(
            self.resource,
            self._namespace,
            version=self._version,
            label_selector=self._label_selector,
            seconds=random.randint(WATCH_SECONDS * 4 // 5, WATCH_SECONDS),
            opened=self._contact_made,
            metadata_only=self._metadata_only,
        )
        async with aclosing(events):
            async for event in events:
                self._apply(event)
                self._failures = 0
                self._contact_made()

    def _apply(self, event: WatchEvent) -> None:
        metadata = event.object["metadata"]
        version = metadata["resourceVersion"]
        ignored = event.type != "BOOKMARK" and self._ignore(event.object)
        if event.type == "DELETED" or ignored:
            # One that was never stored leaves no trace: a cluster may have many, and they change often.
            key = key_of(event.object)
            if not ignored or self._store.get(*key) is not None:
                self._store.remove(key, metadata["uid"], int(version))
        elif event.type != "BOOKMARK":
            self._store.put(event.object)
        self._version = self._newest = version

    def _try_another_version(self) -> bool:
        """Use the next version of an optional resource. Returns False if none is served."""
        if self._untried < 1:
            self._untried = len(self._versions) - 1
            return False
        position = self._versions.index(self.resource.version) + 1
        self.resource = replace(self.resource, version=self._versions[position % len(self._versions)])
        self._untried -= 1
        self._version = ""
        return True

    def _was_never_permitted(self, error: KubeError) -> bool:
        """Whether a new version of this program runs with the permissions of an older one."""
        return isinstance(error, Forbidden) and (self.absent or not self.synced.is_set())

    async def _wait_until_installed(self, error: KubeError) -> None:
        """An optional resource is not served: its CRD is not installed yet, or was removed. Or it may not be read."""
        if not self.absent:
            why = f"may not be read ({error})" if isinstance(error, Forbidden) else "not installed in this cluster"
            level = logging.WARNING if isinstance(error, Forbidden) else logging.INFO
            log.log(level, "%s: %s; retrying every %g s", self.resource, why, ABSENT_RETRY_SECONDS)
        self._contact_made()
        self._store.clear()
        self._version = ""
        self.absent = True
        self.synced.set()
        await asyncio.sleep(ABSENT_RETRY_SECONDS)

    def _contact_made(self) -> None:
        if self.last_error:
            log.info("%s: list and watch succeed again", self.resource)
        self.last_error = ""
        self.failing_since = None
        self.last_contact = time.monotonic()

    def _contact_lost(self, error: str) -> None:
        self.errors += 1
        if not self.last_error:
            log.warning("%s: list or watch failed, retrying; its objects stay as last seen: %s", self.resource, error)
            self.failing_since = time.monotonic()
        self.last_error = error

    async def _back_off(self) -> None:
        self._failures += 1
        delay = exponential_delay(self._failures, FIRST_BACKOFF, LONGEST_BACKOFF)
        await asyncio.sleep(delay * random.uniform(0.5, 1.0))

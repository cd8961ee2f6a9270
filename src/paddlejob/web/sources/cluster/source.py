"""The jobs of a cluster: an informer keeps the list, one job is read while a page shows it."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from paddlejob import contract
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.target import JobView
from paddlejob.client.targets.view import job_view
from paddlejob.client.watch.usage import PodMeter, Usage
from paddlejob.errors import Forbidden, KubeError, NoSuchJob, NotPossible, Overloaded, PaddleJobError, Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.informer import Informer
from paddlejob.kube.resource import Object
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.web.logs.lines import LogQuery, LogRef, Matches, Piece
from paddlejob.web.sources.cluster.machine import ClusterMeter
from paddlejob.web.sources.cluster.pod_logs import PodLogs
from paddlejob.web.sources.cluster.series import SeriesTasks
from paddlejob.web.sources.source import Description
from paddlejob.web.views.machine import MachineInfo
from paddlejob.web.views.row import Key, Row, row_of
from paddlejob.web.views.series import SPARK_POINTS, Series

VIEW_SECONDS = 0.7
"""A view is shared by all pages that ask for it within this time."""
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
log = logging.getLogger(__name__)


class ClusterSource:
    name = "cluster"

    def __init__(self, target: ClusterTarget, namespace: str = "") -> None:
        self.target = target
        self._namespace = namespace
        self._error = "connecting"
        self._client: Client | None = None
        self._informer: Informer[Row] | None = None
        self._sparks: dict[Key, tuple[float, ...]] = {}
        self._views: dict[Key, tuple[float, JobView]] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self._logs = PodLogs(target)
        self._series = SeriesTasks()
        self._pods = PodMeter()
        self._machine = ClusterMeter()

    def describe(self) -> Description:
        error, informer = self._error, self._informer
        # An informer without jobs is empty, and so as false as none.
        if informer is not None and informer.synced.is_set():
            error = str(self.target.not_installed()) if informer.absent else informer.last_error
        elif informer is not None:
            error = informer.last_error or error
        return Description(self.name, self.target.access.server, error, self._namespace)

    def flags(self, namespace: str) -> list[str]:
        context = self.target.access.context
        return [*(["--context", context] if context else ["--cluster"]), "-n", namespace]

    async def run(self) -> None:
        try:
            async with Client(self.target.access) as client:
                self._client = client
                await self._find_namespace(client)
                informer = Informer(client, PADDLEJOBS, self._row, namespace=self._namespace or None, optional=True)
                self._informer = informer
                await informer.run()
        except Exception as error:
            log.exception("the cluster is not watched any more")
            self._error = f"{error}; start pdj web again"
            self._informer = None
        finally:
            self._series.close()

    async def _find_namespace(self, client: Client) -> None:
        """Users who may not list all namespaces get the jobs in the namespace of their context."""
        while not self._namespace:
            try:
                await client.list(PADDLEJOBS, None)
                return
            except Forbidden:
                self._namespace = self.target.default_namespace
            except KubeError as error:
                self._error = str(error)
                if isinstance(error, (Unreachable, Overloaded)):
                    await asyncio.sleep(1.0)
                else:
                    return

    async def refresh(self) -> Mapping[Key, Row]:
        rows = {(row.namespace, row.name): row for row in self._informer or ()}
        for key in self._sparks.keys() - rows.keys():
            del self._sparks[key]
        return rows

    def _row(self, obj: Object) -> Row:
        """A job of another version than ours is shown as such."""
        metadata = obj["metadata"]
        try:
            row = row_of(self.name, job_view(obj))
        except PaddleJobError as error:
            return Row(self.name, metadata["namespace"], metadata["name"], "Damaged", message=str(error))
        key = (row.namespace, row.name)
        spark = self._sparks.get(key, ())
        if isinstance(row.loss, float) and spark[-1:] != (row.loss,):
            spark = self._sparks[key] = (*spark, row.loss)[-SPARK_POINTS:]
        return replace(row, spark=spark)

    async def view(self, namespace: str, name: str) -> JobView:
        """While the cluster does not answer, the job as it was last seen."""
        key = (namespace, name)
        async with self._locks.setdefault(key, asyncio.Lock()):
            seen = self._views.get(key)
            if seen and time.monotonic() - seen[0] < VIEW_SECONDS:
                return seen[1]
            try:
                view = await self.target.read_view(self._open(namespace, name), namespace, name)
            except (Unreachable, Overloaded) as error:
                if seen is None:
                    raise
                return replace(seen[1], note=f"{error}; shown as last seen")
            except NoSuchJob:
                self._views.pop(key, None)
                self._locks.pop(key, None)
                raise
            self._views[key] = (time.monotonic(), view)
            return view

    async def usage(self, view: JobView) -> dict[str, Usage]:
        return await self._pods.read(self._open(), view)

    async def machine(self) -> MachineInfo:
        rows = (await self.refresh()).values()
        return await self._machine.read(self._open(), self.target.access.server, self._namespace, rows)

    async def series(self, namespace: str, name: str) -> Series:
        view = await self.view(namespace, name)
        return await self._series.read(self._open(), view)

    async def logs(self, namespace: str, name: str) -> list[LogRef]:
        return await self._logs.references(self._open(namespace, name), namespace, name)

    def follow(self, namespace: str, name: str, query: LogQuery) -> AsyncIterator[list[Piece]]:
        return self._logs.follow(self._open(namespace, name), namespace, name, query)

    async def search(self, namespace: str, name: str, query: LogQuery, pattern: str) -> Matches:
        return await self._logs.search(self._open(namespace, name), namespace, name, query, pattern)

    def download(self, namespace: str, name: str, query: LogQuery) -> AsyncIterator[bytes]:
        return self._logs.download(self._open(namespace, name), namespace, name, query)

    def _open(self, namespace: str = "default", name: str = "x") -> Client:
        """The connection; raises NoSuchJob for a name that no object can have, which would change the URL."""
        if not re.fullmatch(contract.DNS_LABEL, namespace) or not NAME.fullmatch(name):
            raise NoSuchJob(f"job {name!r} not found in namespace {namespace!r}")
        if self._client is None:
            raise NotPossible(f"{self.target.access.server}: {self._error}")
        return self._client

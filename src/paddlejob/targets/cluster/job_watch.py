"""The jobs of a cluster in memory, kept current by an informer."""

from __future__ import annotations

import asyncio
import logging

from paddlejob.api.types import Metadata, PaddleJob, Spec
from paddlejob.errors import Forbidden, KubeError, Overloaded, PaddleJobError, Unreachable
from paddlejob.kube.client import Client
from paddlejob.kube.informer import Informer
from paddlejob.kube.resource import Object
from paddlejob.objects.resources import PADDLEJOBS
from paddlejob.targets.cluster.parsing import job_view
from paddlejob.targets.views import DAMAGED, JobView

log = logging.getLogger(__name__)


class JobWatch:
    """`namespace` is the only one that is watched; empty for all."""

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self.informer: Informer[JobView] | None = None
        self._problem = "connecting"

    @property
    def problem(self) -> str:
        """Why the jobs may be out of date; empty while the cluster answers."""
        # An informer without jobs is empty, and so as false as none.
        if self.informer is None:
            return self._problem
        return self.informer.last_error or ("" if self.informer.synced.is_set() else self._problem)

    @property
    def absent(self) -> bool:
        """Whether the cluster has no PaddleJobs."""
        return self.informer is not None and self.informer.synced.is_set() and self.informer.absent

    def views(self) -> list[JobView]:
        return [] if self.informer is None else list(self.informer)

    async def run(self, client: Client, own_namespace: str) -> None:
        try:
            await self._find_namespace(client, own_namespace)
            self.informer = Informer(client, PADDLEJOBS, _view, namespace=self.namespace or None, optional=True)
            await self.informer.run()
        except Exception as error:
            log.exception("the cluster is not watched any more")
            self._problem = f"{error}; start pdj web again"
            self.informer = None

    async def _find_namespace(self, client: Client, own: str) -> None:
        """Users who may not list all namespaces get the jobs in the namespace of their context."""
        while not self.namespace:
            try:
                await client.list(PADDLEJOBS, None)
                return
            except Forbidden:
                self.namespace = own
            except KubeError as error:
                self._problem = str(error)
                if not isinstance(error, (Unreachable, Overloaded)):
                    return
                await asyncio.sleep(1.0)


def _view(obj: Object) -> JobView:
    """A job of another version than ours is shown as damaged."""
    try:
        return job_view(obj)
    except PaddleJobError as error:
        metadata = Metadata(name=obj["metadata"]["name"], namespace=obj["metadata"]["namespace"])
        return JobView(PaddleJob(metadata=metadata, spec=Spec()), obj, DAMAGED, str(error), damaged=True)

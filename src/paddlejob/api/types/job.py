"""The resource as a whole."""

from __future__ import annotations

from pydantic import Field

from paddlejob import contract
from paddlejob.api.types.enums import Mode
from paddlejob.api.types.model import Model
from paddlejob.api.types.spec import Spec
from paddlejob.api.types.status import Status


class Metadata(Model):
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resourceVersion: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class PaddleJob(Model):
    apiVersion: str = contract.API_VERSION
    kind: str = contract.KIND
    metadata: Metadata
    spec: Spec
    status: Status = Field(default_factory=lambda: Status())

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def mode(self) -> Mode:
        return self.spec.mode

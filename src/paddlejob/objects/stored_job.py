"""A job in an informer's cache: its templates, most of its size, are compressed, and left out once it has finished."""

from __future__ import annotations

import json
import zlib
from typing import Any

from pydantic import PrivateAttr

from paddlejob.api.types import PaddleJob, Spec

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of the whole job, which no plan reads."""
NO_TEMPLATE: dict[str, Any] = {"spec": {"containers": []}}


class StoredJob(PaddleJob):
    """A job without its templates; `whole()` has them. A finished job needs none: no pod of it is built again."""

    _templates: bytes = PrivateAttr(b"")

    def whole(self) -> PaddleJob:
        if not self._templates:
            return self
        templates = json.loads(zlib.decompress(self._templates))
        return self.model_copy(update={"spec": _with_templates(self.spec, templates)})


def stored(job: PaddleJob) -> StoredJob:
    templates = {role: spec.template for role, spec in job.spec.roles.items()}
    annotations = {name: value for name, value in job.metadata.annotations.items() if name != LAST_APPLIED}
    slim = StoredJob.model_construct(
        apiVersion=job.apiVersion,
        kind=job.kind,
        metadata=job.metadata.model_copy(update={"annotations": annotations}),
        spec=_with_templates(job.spec, dict.fromkeys(templates, NO_TEMPLATE)),
        status=job.status,
    )
    if not job.status.finished:
        slim._templates = zlib.compress(json.dumps(templates).encode(), level=1)
    return slim


def _with_templates(spec: Spec, templates: dict[Any, dict[str, Any]]) -> Spec:
    roles = {role.value: one.model_copy(update={"template": templates[role]}) for role, one in spec.roles.items()}
    return spec.model_copy(update=roles)

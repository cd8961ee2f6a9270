"""The variables of a container that no pod can have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddlejob.api.fault import Fault, Path
from paddlejob.api.rules import Obj
from paddlejob.api.yaml_problem import show

NAME = re.compile(r"[ -<>-~]+")
"""Printable ASCII other than `=`, as Kubernetes 1.34 and later accept it."""
FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
KEYED_FIELD = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
RESOURCE = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)")


def check_variables(container: Obj, path: Path) -> Iterator[Fault]:
    for index, variable in enumerate(container.get("env") or []):
        here = (*path, "env", index)
        if not NAME.fullmatch(str(variable["name"])):
            message = f"{show(variable['name'])} is not the name of an environment variable; rename it"
            yield Fault((*here, "name"), message)
        if "valueFrom" in variable:
            yield from _check_source(variable, here)
    for index, source in enumerate(container.get("envFrom") or []):
        if len(_given(source, "configMapRef", "secretRef")) != 1:
            yield Fault((*path, "envFrom", index), "needs either configMapRef or secretRef; write one of them")


def _check_source(variable: Obj, path: Path) -> Iterator[Fault]:
    source, here = variable["valueFrom"] or {}, (*path, "valueFrom")
    if variable.get("value"):
        yield Fault(here, "cannot be combined with value; remove one of them")
    if len(_given(source, *source)) != 1:
        yield Fault(here, "needs exactly one source, such as configMapKeyRef; write one")
    field = (source.get("fieldRef") or {}).get("fieldPath")
    if field is not None and field not in FIELDS and not KEYED_FIELD.fullmatch(field):
        message = f"{show(field)} is not a field that a variable can have; use one of {', '.join(FIELDS)}"
        yield Fault((*here, "fieldRef", "fieldPath"), message)
    resource = (source.get("resourceFieldRef") or {}).get("resource")
    if resource is not None and not RESOURCE.fullmatch(resource):
        message = f"{show(resource)} is not a resource that a variable can have; use, for example, limits.cpu"
        yield Fault((*here, "resourceFieldRef", "resource"), message)


def _given(source: Obj, *fields: str) -> list[str]:
    return [field for field in fields if source.get(field) is not None]

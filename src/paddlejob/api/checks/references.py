"""Keys that a pod template reads from a ConfigMap or Secret of the same file, and that are not in it."""

from __future__ import annotations

from collections.abc import Iterator

from paddlejob.api.checks.names import containers_of
from paddlejob.api.checks.objects import FIELDS
from paddlejob.api.fault import Fault, Path
from paddlejob.api.rules import ROLES, Obj

VARIABLES = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
VOLUMES = {"configMap": ("ConfigMap", "name"), "secret": ("Secret", "secretName")}
Reference = tuple[str, str, str, Path]
"""The kind and name of an object, a key of it, and where the template names the key."""


def missing_keys(job: Obj, objects: list[Obj]) -> Iterator[Fault]:
    """Of a job without errors. Objects that are not in the file may be in the cluster."""
    for role in ROLES:
        if role not in job["spec"]:
            continue
        pod = job["spec"][role]["template"].get("spec") or {}
        path = ("spec", role, "template", "spec")
        for kind, name, key, where in (*_in_variables(pod, path), *_in_volumes(pod, path)):
            known = _keys(objects, kind, name)
            if known is not None and key not in known:
                message = f"{kind} {name} has no key {key}; add it, or correct the key in the template"
                yield Fault(where, message)


def _in_variables(pod: Obj, path: Path) -> Iterator[Reference]:
    for container, here in containers_of(pod, path):
        for index, variable in enumerate(container.get("env") or []):
            for field, kind in VARIABLES.items():
                source = (variable.get("valueFrom") or {}).get(field)
                if source and not source.get("optional"):
                    where = (*here, "env", index, "valueFrom", field, "key")
                    yield kind, str(source.get("name") or ""), source["key"], where


def _in_volumes(pod: Obj, path: Path) -> Iterator[Reference]:
    for number, volume in enumerate(pod.get("volumes") or []):
        for field, (kind, name) in VOLUMES.items():
            source = volume.get(field) or {}
            for index, item in enumerate([] if source.get("optional") else source.get("items") or []):
                where = (*path, "volumes", number, field, "items", index, "key")
                yield kind, str(source.get(name) or ""), item["key"], where


def _keys(objects: list[Obj], kind: str, name: str) -> set[str] | None:
    """None if the file has no such object."""
    found = [one for one in objects if one.get("kind") == kind and (one.get("metadata") or {}).get("name") == name]
    fields = [one.get(field) for one in found for field in FIELDS[kind]]
    return {key for values in fields if isinstance(values, dict) for key in values} if found else None

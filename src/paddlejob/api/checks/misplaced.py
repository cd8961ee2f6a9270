"""Where an unknown field belongs, if the schema knows it elsewhere."""

from __future__ import annotations

from functools import cache
from typing import Any

from paddlejob.api.crd import job_schema
from paddlejob.api.fault import Path, format_path
from paddlejob.api.rules import ROLES

METADATA_FIELDS = (
    "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
    "generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
POD = ("template", "spec")
CONTAINER = (*POD, "containers", 0)


def remedy(path: Path, field: str) -> str:
    """What to do with an unknown field that belongs elsewhere; empty if it belongs nowhere."""
    homes = [home for home, fields in _homes(path).items() if field in fields and home != path]
    if not homes:
        return ""
    home = min(homes, key=lambda home: _distance(path, home))
    if path[: len(home)] == home:
        beside = f", beside {path[len(home)]}" if home and isinstance(path[len(home)], str) else ""
        return f"it belongs in {format_path(home) or 'the top level'}{beside}; indent it less"
    return f"it belongs in {format_path(home)}; move it there and indent it below `{_last_name(home)}:`"


def _homes(path: Path) -> dict[Path, frozenset[str]]:
    """The objects near a path, each with its fields."""
    role = path[1] if len(path) > 1 and path[1] in ROLES else "worker"
    here: Path = ("spec", role)
    container = path[:6] if len(path) > 5 and path[:5] == (*here, *POD, "containers") else (*here, *CONTAINER)
    fields = _fields()
    return {
        (): fields["root"],
        ("metadata",): frozenset(METADATA_FIELDS),
        ("spec",): fields["spec"],
        here: fields["role"],
        (*here, *POD): fields["pod"],
        container: fields["container"],
        (*container, "resources"): frozenset(("limits", "requests")),
    }


@cache
def _fields() -> dict[str, frozenset[str]]:
    root = job_schema()
    spec: Any = root["properties"]["spec"]
    role = spec["properties"]["worker"]
    pod = role["properties"]["template"]["properties"]["spec"]
    container = pod["properties"]["containers"]["items"]
    parts = {"root": root, "spec": spec, "role": role, "pod": pod, "container": container}
    return {name: frozenset(part["properties"]) for name, part in parts.items()}


def _distance(one: Path, other: Path) -> int:
    """The steps from one path to the other."""
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    return len(one) + len(other) - 2 * common


def _last_name(path: Path) -> str:
    return next(str(step) for step in reversed(path) if isinstance(step, str))

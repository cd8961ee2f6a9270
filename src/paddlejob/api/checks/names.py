"""Names and paths in a pod template that no pod can have, or that would lead out of the directories of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddlejob import contract
from paddlejob.api.fault import Fault, Path, Severity
from paddlejob.api.rules import NOT_A_LABEL, Obj
from paddlejob.api.yaml_problem import show

LABEL = re.compile(contract.DNS_LABEL)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
OUTSIDE = "points outside the volume; use a relative path without '..'"
NOT_A_CLAIM = (
    "is not a valid name; use lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
)
WITH_FILES = ("configMap", "secret", "downwardAPI")


def check_names(pod: Obj, path: Path) -> Iterator[Fault]:
    """Everything about the names and paths of a pod that the API server or the kubelet rejects."""
    yield from unsafe_names(pod, path)
    for field in ("hostname", "subdomain"):
        if pod.get(field) and not LABEL.fullmatch(str(pod[field])):
            yield Fault((*path, field), f"{show(pod[field])} {NOT_A_LABEL}")
    for number, volume in enumerate(pod.get("volumes") or []):
        kinds = sorted(key for key, value in volume.items() if key != "name" and value is not None)
        if len(kinds) > 1:
            yield Fault((*path, "volumes", number), f"has {len(kinds)} types: {', '.join(kinds)}; keep one")
    claims = [one.get("name") for one in pod.get("resourceClaims") or []]
    for container, here in containers_of(pod, path):
        yield from _check_mount_paths(container, here)
        yield from _check_claims(container, here, claims)


def unsafe_names(pod: Obj, path: Path) -> Iterator[Fault]:
    """What an engine must not act on, also in jobs that were stored before it was checked."""
    volumes = [str(volume.get("name") or "") for volume in pod.get("volumes") or []]
    containers = list(containers_of(pod, path))
    yield from _duplicates(volumes, (*path, "volumes"), "volume")
    yield from _duplicates([str(one.get("name") or "") for one, _ in containers], (*path, "containers"), "container")
    for container, here in containers:
        if not LABEL.fullmatch(str(container.get("name") or "")):
            yield Fault((*here, "name"), f"{show(container.get('name'))} {NOT_A_LABEL}")
        for index, mount in enumerate(container.get("volumeMounts") or []):
            yield from _check_mount(mount, (*here, "volumeMounts", index), volumes)
    for number, volume in enumerate(pod.get("volumes") or []):
        yield from _check_volume(volume, (*path, "volumes", number))


def containers_of(pod: Obj, path: Path) -> Iterator[tuple[Obj, Path]]:
    """Init containers, then containers, each with its path."""
    for field in ("initContainers", "containers"):
        for number, container in enumerate(pod.get(field) or []):
            yield container, (*path, field, number)


def _check_claims(container: Obj, path: Path, known: list[str | None]) -> Iterator[Fault]:
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or []):
        if claim.get("name") not in known:
            message = f"no resource claim is named {show(claim.get('name'))}; add it to resourceClaims of the pod"
            yield Fault((*path, "resources", "claims", index, "name"), message)


def _check_mount(mount: Obj, path: Path, volumes: list[str]) -> Iterator[Fault]:
    name = str(mount.get("name") or "")
    if name not in volumes:
        known = f"use one of {', '.join(volumes)}" if volumes else "there are none"
        yield Fault((*path, "name"), f'no volume is named "{name}" ({known}); add it to volumes of the pod')
    if _is_root(str(mount.get("mountPath") or "")):
        yield Fault((*path, "mountPath"), "is the root directory; choose a directory below it")
    for field in ("subPath", "subPathExpr"):
        if mount.get(field) and not stays_inside(str(mount[field])):
            yield Fault((*path, field), f"{show(mount[field])} {OUTSIDE}")


def _check_mount_paths(container: Obj, path: Path) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        here, target = (*path, "volumeMounts", index), str(mount.get("mountPath") or "")
        if target in seen:
            yield Fault((*here, "mountPath"), f"{show(target)} is used twice in this container; choose another path")
        seen.add(target)
        # The API server of 1.36 accepts both, though its documentation does not.
        if not target.startswith("/"):
            message = f"{show(target)} is not an absolute path; write {show('/' + target)}"
            yield Fault((*here, "mountPath"), message, Severity.WARNING)
        if ":" in target:
            message = f"{show(target)} contains a colon; choose a path without one"
            yield Fault((*here, "mountPath"), message, Severity.WARNING)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield Fault((*here, "subPathExpr"), "cannot be combined with subPath; remove one of them")


def _check_volume(volume: Obj, path: Path) -> Iterator[Fault]:
    if not LABEL.fullmatch(str(volume.get("name") or "")):
        yield Fault((*path, "name"), f"{show(volume.get('name'))} {NOT_A_LABEL}")
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    if claim is not None and not SUBDOMAIN.fullmatch(str(claim)):
        yield Fault((*path, "persistentVolumeClaim", "claimName"), f"{show(claim)} {NOT_A_CLAIM}")
    host = str((volume.get("hostPath") or {}).get("path", "/"))
    if not host.startswith("/") or ".." in host.split("/"):
        yield Fault((*path, "hostPath", "path"), f"{show(host)} is not an absolute path without '..'; correct it")
    for kind in WITH_FILES:
        for index, item in enumerate((volume.get(kind) or {}).get("items") or []):
            if not stays_inside(str(item.get("path") or "")):
                yield Fault((*path, kind, "items", index, "path"), f"{show(item.get('path'))} {OUTSIDE}")


def stays_inside(path: str) -> bool:
    """Whether a path inside a volume stays there."""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _is_root(path: str) -> bool:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return not parts


def _duplicates(names: list[str], path: Path, what: str) -> Iterator[Fault]:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Fault(path, f'two {what}s are named "{name}"; rename one')

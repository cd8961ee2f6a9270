"""What can be checked in a pod template before it runs: names that are used twice, and references to nothing."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from paddlejob import contract
from paddlejob.errors import PaddleJobError
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, secrets

Manifest = dict[str, Any]
LABEL = re.compile(contract.DNS_LABEL)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
HONOURED_HOOKS = ("exec", "sleep")
NOT_HONOURED_IN_POD = (
    "activeDeadlineSeconds", "dnsConfig", "ephemeralContainers", "hostAliases", "hostIPC", "hostPID", "hostUsers",
    "overhead", "readinessGates", "resourceClaims", "runtimeClassName", "securityContext", "setHostnameAsFQDN",
    "shareProcessNamespace", "subdomain",
)  # fmt: skip
NOT_HONOURED_IN_CONTAINER = (
    "livenessProbe", "readinessProbe", "securityContext", "startupProbe", "stdin", "tty", "volumeDevices",
)  # fmt: skip


def containers_of(pod: Manifest) -> list[Manifest]:
    return [*(pod.get("initContainers") or []), *pod["containers"]]


def template_errors(pod: Manifest) -> Iterator[str]:
    """Each with the remedy."""
    yield from unsafe_names(pod)
    yield from _duplicates("container", [one.get("name") or "" for one in containers_of(pod)])
    volumes = [one.get("name") or "" for one in pod.get("volumes") or []]
    yield from _duplicates("volume", volumes)
    for container in containers_of(pod):
        for mount in container.get("volumeMounts") or []:
            if mount.get("name") not in volumes:
                known = f"the pod has: {', '.join(volumes)}" if volumes else "the pod has no volumes"
                yield (
                    f"container {container['name']} mounts volume {mount.get('name')}, which does not exist; add it "
                    f"to volumes, or correct the name ({known})"
                )


def environment_errors(pod: Manifest, options: RunOptions) -> Iterator[str]:
    """References to ConfigMaps, Secrets, keys and fields that are not there."""
    metadata = {"name": "pod", "namespace": "default"}
    facts = PodFacts(
        {"metadata": metadata, "spec": pod}, "", "", "", config_maps(options.objects), secrets(options.objects)
    )
    for container in containers_of(pod):
        try:
            environment(container, facts)
        except PaddleJobError as error:
            yield f"container {container['name']}: {error}"


def not_honoured(pod: Manifest, isolated: bool) -> list[str]:
    """The fields of a template that have no effect on one machine."""
    found = [field for field in NOT_HONOURED_IN_POD if pod.get(field)]
    for container in containers_of(pod):
        found += [field for field in NOT_HONOURED_IN_CONTAINER if container.get(field)]
        if container.get("terminationMessagePath") and not isolated:
            found.append("terminationMessagePath")
        for hook, handler in (container.get("lifecycle") or {}).items():
            ignored = [kind for kind in handler if kind not in HONOURED_HOOKS] if isinstance(handler, dict) else [hook]
            found += [hook if isinstance(handler, str) else f"{hook}.{kind}" for kind in ignored]
    if pod.get("hostname") and not isolated:
        found.append("hostname")
    return sorted(set(found))


def _duplicates(kind: str, names: list[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{count} {kind}s are named {name}; give each a name of its own"


def unsafe_names(pod: Manifest) -> Iterator[str]:
    """Names and paths that Kubernetes rejects, and that would leave the directories of the job here."""
    for container in containers_of(pod):
        if not LABEL.fullmatch(str(container.get("name") or "")):
            yield _bad_name("container", container.get("name"))
        for mount in container.get("volumeMounts") or []:
            if posixpath.normpath("/" + str(mount.get("mountPath")).lstrip("/")) == "/":
                yield f"container {container['name']} mounts a volume at /; choose a directory below it"
            if mount.get("subPath") and not _stays_inside(mount["subPath"]):
                yield _bad_path(f"subPath {mount['subPath']} of container {container['name']}")
    for volume in pod.get("volumes") or []:
        if not LABEL.fullmatch(str(volume.get("name") or "")):
            yield _bad_name("volume", volume.get("name"))
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim is not None and not SUBDOMAIN.fullmatch(str(claim)):
            yield _bad_name("claim", claim)
        path = str((volume.get("hostPath") or {}).get("path", "/"))
        if not path.startswith("/") or ".." in path.split("/"):
            yield f"hostPath {path} is not an absolute path without '..'; correct it"
        for kind in ("configMap", "secret", "downwardAPI"):
            for item in (volume.get(kind) or {}).get("items") or []:
                if not _stays_inside(str(item.get("path") or "")):
                    yield _bad_path(f"path {item.get('path')} in volume {volume.get('name')}")


def _stays_inside(path: str) -> bool:
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _bad_path(what: str) -> str:
    return f"{what} points outside the volume; use a relative path without '..'"


def _bad_name(kind: str, name: object) -> str:
    return f"{name!r} is not a valid name for a {kind}; use lower-case letters, digits and '-'"

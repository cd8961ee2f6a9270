"""What can be checked in a pod template before it runs: names that are used twice, and references to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from paddlejob.errors import PaddleJobError
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, secrets

Manifest = dict[str, Any]
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

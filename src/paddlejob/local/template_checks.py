"""What a pod template asks for and one machine cannot give: objects that are not in the file, fields without effect."""

from __future__ import annotations

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

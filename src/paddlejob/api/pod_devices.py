"""Which devices the training container of a pod has, as far as its template tells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from paddlejob.api.devices import BY_KIND, Device, device_of, may_be_device
from paddlejob.api.quantity import parse_quantity, requests
from paddlejob.api.template import training_container
from paddlejob.api.types import DeviceKind

NOT_DEVICES = ("/dev/shm/", "/dev/hugepages/", "/dev/infiniband/", "/dev/log/")


@dataclass(frozen=True)
class PodDevices:
    device: Device | None = None
    """The one kind of device that the pod has; None if there is none, or it cannot be told."""
    count: int = 0
    """How many; 0 if that cannot be told."""
    hidden_in: str = ""
    """What may bring a device that the template does not name, for example privileged."""

    @property
    def none_possible(self) -> bool:
        return not (self.device or self.hidden_in)


def devices_of_pod(template: dict[str, Any], declared: DeviceKind = DeviceKind.AUTO) -> PodDevices:
    """`declared` is spec.device, which decides what the template leaves open."""
    container = training_container(template["spec"]["containers"])
    amounts = {name: parse_quantity(amount) for name, amount in requests(container).items()}
    extended = [name for name, amount in amounts.items() if amount and may_be_device(name)]
    counts: Counter[DeviceKind] = Counter()
    for name in extended:
        if device := device_of(name):
            counts[device.kind] += int(amounts[name])
    if declared is DeviceKind.CPU:
        return PodDevices()
    if declared is not DeviceKind.AUTO:
        return PodDevices(BY_KIND[declared], counts[declared] or 1)
    if len(counts) == 1:
        [(kind, count)] = counts.items()
        return PodDevices(BY_KIND[kind], count)
    return PodDevices(hidden_in=", ".join(extended) or _hidden_in(template["spec"], container))


def _hidden_in(pod: dict[str, Any], container: dict[str, Any]) -> str:
    if (container.get("resources") or {}).get("claims"):
        return "resources.claims"
    if (container.get("securityContext") or {}).get("privileged"):
        return "securityContext.privileged"
    mounted = {mount["name"] for mount in container.get("volumeMounts") or []}
    for volume in pod.get("volumes") or []:
        path = f"{(volume.get('hostPath') or {}).get('path') or ''}/"
        if volume["name"] in mounted and path.startswith("/dev/") and not path.startswith(NOT_DEVICES):
            return f"the volume {volume['name']}"
    return "runtimeClassName" if pod.get("runtimeClassName") else ""

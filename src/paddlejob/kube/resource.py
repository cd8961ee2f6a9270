"""Resources of the Kubernetes API and their paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
Objects = list[Object]


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the API; `group` is empty for the core API."""

    group: str
    version: str
    plural: str
    namespaced: bool = True
    kind: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, namespace: str | None = None) -> str:
        """The path of all objects, in one namespace or in the whole cluster."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            return f"{root}/namespaces/{namespace}/{self.plural}"
        return f"{root}/{self.plural}"

    def item(self, name: str, namespace: str | None = None, subresource: str = "") -> str:
        """The path of one object, or of a subresource such as `status`."""
        if not name:
            raise ValueError(f"{self}: the object's name is empty")
        if self.namespaced and not namespace:
            raise ValueError(f"{self} {name}: a namespace is required")
        path = f"{self.collection(namespace)}/{name}"
        return f"{path}/{subresource}" if subresource else path


PODS = Resource("", "v1", "pods", kind="Pod")
CONFIGMAPS = Resource("", "v1", "configmaps", kind="ConfigMap")
SERVICES = Resource("", "v1", "services", kind="Service")
EVENTS = Resource("", "v1", "events", kind="Event")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False, kind="Namespace")
NODES = Resource("", "v1", "nodes", namespaced=False, kind="Node")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", kind="PersistentVolumeClaim")
DEPLOYMENTS = Resource("apps", "v1", "deployments", kind="Deployment")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False, kind="PriorityClass")
LEASES = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    namespaced=False,
    kind="CustomResourceDefinition",
)

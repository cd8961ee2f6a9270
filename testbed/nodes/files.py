"""The configuration files of a node."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from testbed.addons.dns import DOMAIN, SERVICE_ADDRESS
from testbed.build.packages import CNI_PLUGINS
from testbed.credentials.certificates import Pair
from testbed.images.baseimages import PAUSE

RUNTIME_SOCKET = "/run/containerd/containerd.sock"


def containerd(directory: Path, images: Path, registry: str) -> Path:
    """Write containerd's configuration. Its root is kept, and all images of all registries come from `registry`."""
    hosts = directory / "certs.d/_default/hosts.toml"
    hosts.parent.mkdir(parents=True, exist_ok=True)
    hosts.write_text(
        f'server = "http://{registry}"\n[host."http://{registry}"]\n  capabilities = ["pull", "resolve"]\n'
    )
    cri = '[plugins."io.containerd.grpc.v1.cri"'
    return _save(
        directory / "containerd.toml",
        "version = 2\n"
        f'root = "{images}"\n'
        f'state = "{Path(RUNTIME_SOCKET).parent}"\n'
        f'[grpc]\naddress = "{RUNTIME_SOCKET}"\n'
        f'[plugins."io.containerd.internal.v1.opt"]\npath = "{directory / "opt"}"\n'
        f'{cri}]\nsandbox_image = "{PAUSE}"\n'
        # Without it, sandboxes fail to start on machines without CAP_SYS_RESOURCE.
        "restrict_oom_score_adj = true\n"
        f'{cri}.cni]\nbin_dir = "{CNI_PLUGINS}"\nconf_dir = "{directory / "cni"}"\n'
        f'{cri}.registry]\nconfig_path = "{directory / "certs.d"}"\n',
    )


def hosts(directory: Path, count: int, address: Callable[[int], str]) -> Path:
    """Write the names of all nodes: on the host network, gloo looks up the name of its node."""
    names = [f"{address(number)} node-{number}" for number in range(1, count + 1)]
    return _save(directory / "hosts", "\n".join(["127.0.0.1 localhost", *names, ""]))


def cni(directory: Path, subnet: str) -> Path:
    """Write the CNI configuration: a bridge without masquerading, so that pods on different nodes see each other."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": subnet}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    document = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, portmap]}
    (directory / "cni").mkdir(exist_ok=True)
    return _save(directory / "cni/pods.conflist", json.dumps(document))


def kubelet(directory: Path, cgroup: str, authority: Path, serving: Pair, reserved_memory: int) -> Path:
    """Write the kubelet's configuration: short intervals, and a part of this machine's memory."""
    document: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{RUNTIME_SOCKET}",
        "authentication": {"x509": {"clientCAFile": str(authority)}},
        # The certificate contains the node's address; otherwise exec and logs fail.
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "clusterDNS": [SERVICE_ADDRESS],
        "clusterDomain": DOMAIN,
        "resolvConf": str(_save(directory / "resolv.conf", "")),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "systemReserved": {"memory": str(reserved_memory)},
        "makeIPTablesUtilChains": False,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "nodeLeaseDurationSeconds": 4,
    }
    return _save(directory / "kubelet.yaml", yaml.safe_dump(document))


def _save(path: Path, text: str) -> Path:
    path.write_text(text)
    return path

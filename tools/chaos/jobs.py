"""The population: small jobs of all shapes. Their programs run until a file appears, with a heartbeat every second."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob import contract

Object = dict[str, Any]
MANY = 1000
"""A backoffLimit that no run reaches."""
QUICK = {
    "terminationGracePeriodSeconds": 2,
    "tolerations": [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for taint in ("not-ready", "unreachable")
    ],
}
"""Pods leave a lost node after seconds instead of a minute."""
BEAT = 'echo "$(date +%s) $ATTEMPT $POD $UID_OF_POD" >> "/beats/$JOB"'
END = ".end"
"""The file that ends the programs, in the directory of the heartbeats."""
TRAIN = f'trap "exit 143" TERM; while [ ! -e /beats/{END} ]; do {BEAT}; sleep 1; done; exit 0'
SERVE = f'trap "exit 143" TERM; while true; do {BEAT}; sleep 1; done'
FAIL = "sleep 3; echo broken; exit 7"


@dataclass(frozen=True)
class Shape:
    """A kind of job. `ends` is the phase that it must reach, for `reason` if that is given."""

    name: str
    roles: dict[str, int]
    spec: Object = field(default_factory=dict)
    ends: str = "Completed"
    reason: str = ""
    train: str = TRAIN
    image: str = ""
    """A training image, whose own program runs instead."""

    @property
    def steady(self) -> bool:
        """Whether it runs until the end, so that it is a target of faults."""
        return self.ends == "Completed" and not self.image

    def document(self, beats: Path) -> Object:
        make = _paddle_template if self.image else _template
        roles = {
            role: {"replicas": count, "template": {"spec": make(self, role, beats) | QUICK}}
            for role, count in self.roles.items()
        }
        for role, limits in self.spec.get("limits", {}).items():
            roles[role] |= limits
        spec = {"backoffLimit": MANY, "cleanPodPolicy": "Always"} | self.spec | roles
        spec.pop("limits", None)
        metadata = {"name": self.name}
        return {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "metadata": metadata, "spec": spec}


POPULATION = (
    Shape("collective", {"worker": 2}),
    Shape("single", {"worker": 1}),
    Shape("servers", {"ps": 1, "worker": 2}, {"intranet": "Service"}),
    Shape("host", {"worker": 2}, {"intranet": "Host"}),
    Shape("heter", {"ps": 1, "worker": 1, "heter": 1}),
    Shape("elastic", {"worker": 2}, {"elastic": 1, "limits": {"worker": {"requests": 1, "limits": 3}}}),
    Shape("failing", {"worker": 1}, {"backoffLimit": 1}, "Failed", "BackoffLimitExceeded", FAIL),
    Shape("late", {"worker": 1}, {"activeDeadlineSeconds": 20}, "Failed", "DeadlineExceeded", SERVE),
)


PADDLE = Shape("paddle", {"ps": 1, "worker": 2}, image="registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1")
"""Real training, which ends by itself."""


def _template(shape: Shape, role: str, beats: Path) -> Object:
    container = {
        "name": contract.TRAINING_CONTAINER,
        "image": "busybox",
        "command": ["sh", "-c", SERVE if role == "ps" else shape.train],
        "env": [
            {"name": "JOB", "value": shape.name},
            _from_field("POD", "metadata.name"),
            _from_field("UID_OF_POD", "metadata.uid"),
            _from_field("ATTEMPT", f"metadata.labels['{contract.LABEL_ATTEMPT}']"),
        ],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}},
        "volumeMounts": [{"name": "beats", "mountPath": "/beats"}],
    }
    return {"containers": [container], "volumes": [{"name": "beats", "hostPath": {"path": str(beats)}}]}


def _paddle_template(shape: Shape, role: str, beats: Path) -> Object:
    env = [{"name": name, "value": value} for name, value in (("EPOCHS", "1"), ("SAMPLES", "4000"))]
    return {"containers": [{"name": contract.TRAINING_CONTAINER, "image": shape.image, "env": env}]}


def _from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

"""The population: small jobs of all shapes. Their programs run until a file appears, with a beat every two seconds."""

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
BEAT = 'now=$(date +%s); echo "$now $LIFE $ATTEMPT $POD $UID_OF_POD" >> "/beats/$JOB"'
PRINT = '; echo "step=$now loss=0.5"'
"""Steps rise from attempt to attempt, as those of a program that resumes from a checkpoint."""
IGNORED_STATUS = 42
TRAPS = f'trap "exit 143" TERM; trap "exit {IGNORED_STATUS}" USR1'
END = ".end"
"""The file that ends the programs, in the directory of the heartbeats."""
UNTIL_THE_END = f"{TRAPS}; while [ ! -e /beats/{END} ]; do {BEAT}"
TRAIN, TRAIN_SILENTLY = f"{UNTIL_THE_END}{PRINT}; sleep 2; done", f"{UNTIL_THE_END}; sleep 2; done"
SERVE = f"{TRAPS}; while true; do {BEAT}; sleep 2; done"
FAIL = "sleep 3; echo broken; exit %d"
POLICY, HANGING = "policy", "hanging"


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
    spread: bool = False
    """Whether each worker needs a node of its own."""

    @property
    def size(self) -> int:
        return sum(self.roles.values())

    @property
    def scalable(self) -> bool:
        return self.steady and bool(self.spec.get("elastic"))

    @property
    def live(self) -> bool:
        """Whether workers are replaced and counted one by one."""
        return self.scalable and self.spec.get("withGloo") == 0

    @property
    def steady(self) -> bool:
        """Whether it runs until the end, so that it is a target of faults."""
        return self.ends == "Completed" and not self.image

    def document(self, beats: Path, life: int = 1) -> Object:
        roles: Object = {
            role: {"replicas": count, "template": {"spec": _template(self, role, beats, life) | QUICK}}
            for role, count in self.roles.items()
        }
        for role, limits in self.spec.get("limits", {}).items():
            roles[role] |= limits
        spec = {"backoffLimit": MANY, "cleanPodPolicy": "Always"} | self.spec | roles
        spec.pop("limits", None)
        metadata = {"name": self.name}
        return {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "metadata": metadata, "spec": spec}


def _rule(action: str, status: int) -> Object:
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [status]}}]}


POPULATION = (
    Shape("collective", {"worker": 2}),
    Shape("single", {"worker": 1}, train=TRAIN_SILENTLY),
    Shape("servers", {"ps": 1, "worker": 2}, {"intranet": "Service"}),
    Shape("host", {"worker": 2}, {"intranet": "Host"}),
    Shape("heter", {"ps": 1, "worker": 1, "heter": 1}),
    Shape("elastic", {"worker": 2}, {"elastic": 1, "limits": {"worker": {"limits": 3}}}),
    Shape(
        "resizing",
        {"worker": 3},
        {"elastic": 1, "growthIntervalSeconds": 5, "limits": {"worker": {"requests": 1, "limits": 3}}},
        spread=True,
    ),
    Shape("live", {"ps": 1, "worker": 2}, {"elastic": 1, "withGloo": 0, "limits": {"worker": {"limits": 3}}}),
    Shape(POLICY, {"worker": 2}, {"failurePolicy": _rule("Ignore", IGNORED_STATUS)}),
    Shape(HANGING, {"worker": 2}, {"stallSeconds": 20}),
    Shape("failing", {"worker": 1}, {"backoffLimit": 1}, "Failed", "BackoffLimitExceeded", FAIL % 7),
    Shape("fatal", {"worker": 1}, {"failurePolicy": _rule("Fail", 43)}, "Failed", "FailurePolicy", FAIL % 43),
    Shape("late", {"worker": 1}, {"activeDeadlineSeconds": 20}, "Failed", "DeadlineExceeded", SERVE),
)


PADDLE = Shape("paddle", {"ps": 1, "worker": 2}, image="registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1")
"""Real training, which ends by itself."""
SHORT_TRAINING = {"EPOCHS": "6", "EPOCH_SECONDS": "4", "SAMPLES": "2000"}


def _template(shape: Shape, role: str, beats: Path, life: int) -> Object:
    container = {
        "name": contract.TRAINING_CONTAINER,
        "env": [
            {"name": "JOB", "value": shape.name},
            {"name": "LIFE", "value": str(life)},
            _from_field("POD", "metadata.name"),
            _from_field("UID_OF_POD", "metadata.uid"),
            _from_field("ATTEMPT", f"metadata.labels['{contract.LABEL_ATTEMPT}']"),
        ],
    }
    if shape.image:
        env = [{"name": name, "value": value} for name, value in SHORT_TRAINING.items()]
        return {"containers": [container | {"image": shape.image, "env": [*container["env"], *env]}]}
    own = {
        "image": "busybox",
        "command": ["sh", "-c", SERVE if role == "ps" else shape.train],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}},
        "volumeMounts": [{"name": "beats", "mountPath": "/beats"}],
    }
    affinity = {"affinity": _apart(shape.name)} if shape.spread else {}
    volumes = [{"name": "beats", "hostPath": {"path": str(beats)}}]
    return {"containers": [container | own], "volumes": volumes} | affinity


def _apart(job: str) -> Object:
    """No two pods of the job on one node."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {contract.LABEL_JOB: job}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

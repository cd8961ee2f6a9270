"""Where and when pods are scheduled: gangs and topologies."""

from __future__ import annotations

import re

from paddlejob import contract
from paddlejob.api.rules.rule import ROLES, Obj, Rule


def _gang_can_fit(spec: Obj) -> str | None:
    least = (spec.get("schedulingPolicy") or {}).get("minAvailable")
    total = sum(spec[role]["replicas"] for role in ROLES if role in spec)
    if least is None or least <= total:
        return None
    return (
        f"spec.schedulingPolicy.minAvailable: {least} is more than the {total} pods of the job; "
        "lower it, or remove it to wait for all pods"
    )


def _one_kind_of_topology(spec: Obj) -> str | None:
    given = _topology(spec)
    if given is None or ("preferred" in given) != ("required" in given):
        return None
    return f"spec.schedulingPolicy.topology: {_ONE_TOPOLOGY}"


def _topology_is_a_label(spec: Obj) -> str | None:
    for kind, label in (_topology(spec) or {}).items():
        if not re.fullmatch(contract.LABEL_KEY, label):
            return f"spec.schedulingPolicy.topology.{kind}: {label!r} {_NOT_A_KEY}"
    return None


def _topology(spec: Obj) -> Obj | None:
    return (spec.get("schedulingPolicy") or {}).get("topology")


_ONE_TOPOLOGY = "needs either preferred or required; set one of them to a node label"
_NOT_A_KEY = "is not the key of a node label; use one that the nodes have, as in topology.kubernetes.io/zone"
_CEL_TOPOLOGY = "self.schedulingPolicy.topology"
_CEL_NO_TOPOLOGY = f"!has(self.schedulingPolicy) || !has({_CEL_TOPOLOGY})"
_CEL_LABEL_KEY = contract.LABEL_KEY.replace("\\", r"\\")
_CEL_TOTAL = " + ".join(f"(has(self.{role}) ? self.{role}.replicas : 0)" for role in ROLES)

RULES = (
    Rule(
        "spec",
        "!has(self.schedulingPolicy) || !has(self.schedulingPolicy.minAvailable) || "
        f"self.schedulingPolicy.minAvailable <= {_CEL_TOTAL}",
        "minAvailable is more than the pods of the job; lower it, or remove it to wait for all pods",
        _gang_can_fit,
        ".schedulingPolicy",
    ),
    Rule(
        "spec",
        f"{_CEL_NO_TOPOLOGY} || has({_CEL_TOPOLOGY}.preferred) != has({_CEL_TOPOLOGY}.required)",
        f"topology {_ONE_TOPOLOGY}",
        _one_kind_of_topology,
        ".schedulingPolicy",
    ),
    Rule(
        "spec",
        f"{_CEL_NO_TOPOLOGY} || "
        + " && ".join(
            f"(!has({_CEL_TOPOLOGY}.{kind}) || {_CEL_TOPOLOGY}.{kind}.matches('^{_CEL_LABEL_KEY}$'))"
            for kind in ("preferred", "required")
        ),
        f"the value of topology {_NOT_A_KEY}",
        _topology_is_a_label,
        ".schedulingPolicy",
    ),
)

"""Which roles a job has, and how many replicas each may have."""

from __future__ import annotations

from paddlejob.api.rules.rule import Obj, Rule


def _has_worker(spec: Obj) -> str | None:
    if "worker" in spec:
        return None
    return f"spec.worker: {_NO_WORKER}"


_NO_WORKER = "is missing; every job needs workers, also one with ps or heter"
_NO_SERVERS = "is missing; a job with heter also needs parameter servers"


def _heter_has_servers(spec: Obj) -> str | None:
    if "heter" not in spec or "ps" in spec:
        return None
    return f"spec.ps: {_NO_SERVERS}"


def _within_bounds(role: Obj) -> str | None:
    fewest, most = role.get("requests") or 1, role.get("limits")
    if fewest > role["replicas"] or (most is not None and role["replicas"] > most):
        return (
            f"replicas: {role['replicas']} is outside {fewest} to {most or 'any'}; "
            "choose a value in that range or change requests and limits"
        )
    return None


RULES = (
    Rule("spec", "has(self.worker)", _NO_WORKER, _has_worker, ".worker"),
    Rule("spec", "!has(self.heter) || has(self.ps)", _NO_SERVERS, _heter_has_servers, ".ps"),
    Rule(
        "role",
        "(!has(self.requests) || self.requests <= self.replicas) && "
        "(!has(self.limits) || self.replicas <= self.limits)",
        "is outside requests to limits; choose a value in that range or change requests and limits",
        _within_bounds,
        ".replicas",
    ),
)

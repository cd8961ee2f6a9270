"""Who manages a job, and what becomes of its pods."""

from __future__ import annotations

import re

from paddlejob.api.rules.rule import Obj, Rule


def _one_clean_policy(spec: Obj) -> str | None:
    new, old = spec.get("cleanPodPolicy"), spec.get("cleanPolicy")
    if new is None or old is None or new == old:
        return None
    return f"spec.cleanPolicy: {old} differs from cleanPodPolicy ({new}), which means the same; remove cleanPolicy"


def _manager_is_a_path(spec: Obj) -> str | None:
    given = spec.get("managedBy")
    return None if given is None or re.fullmatch(_MANAGER, given) else f"spec.managedBy: {_NOT_A_MANAGER}"


_MANAGER = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9._~/]+"
_NOT_A_MANAGER = "is not the name of a controller; use a domain, a slash and a name, as in example.com/controller"

RULES = (
    Rule(
        "spec",
        "!has(self.cleanPolicy) || !has(self.cleanPodPolicy) || self.cleanPolicy == self.cleanPodPolicy",
        "differs from cleanPodPolicy, which means the same; remove cleanPolicy",
        _one_clean_policy,
        ".cleanPolicy",
    ),
    Rule(
        "spec",
        f"!has(self.managedBy) || self.managedBy.matches('^{_MANAGER}$')",
        _NOT_A_MANAGER,
        _manager_is_a_path,
        ".managedBy",
    ),
)

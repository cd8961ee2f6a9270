"""How a job handles failures and hangs, and how its progress is read."""

from __future__ import annotations

from paddlejob.api.progress_pattern import BadPattern, compile_pattern
from paddlejob.api.rules.rule import ROLES, Obj, Rule


def _stall_needs_the_log(spec: Obj) -> str | None:
    if "stallSeconds" not in spec or (spec.get("progress") or {}).get("enabled", True):
        return None
    return f"spec.stallSeconds: {_NO_LOG}"


_NO_LOG = "has no effect if the log is not read; remove it, or set progress.enabled to true"


def _failure_rules_say_when(spec: Obj) -> str | None:
    for number, rule in enumerate(_failure_rules(spec)):
        if ("onExitCodes" in rule) == ("onReasons" in rule):
            return f"spec.failurePolicy.rules: rule {number} {_WHEN}"
    return None


def _failure_rules_name_roles(spec: Obj) -> str | None:
    for number, rule in enumerate(_failure_rules(spec)):
        role = rule.get("onExitCodes", {}).get("role")
        if role and role not in spec:
            return f"spec.failurePolicy.rules: rule {number} names {role}, {_NO_ROLE}"
    return None


def _failure_rules(spec: Obj) -> list[Obj]:
    found: list[Obj] = (spec.get("failurePolicy") or {}).get("rules") or []
    return found


_WHEN = "needs either onExitCodes or onReasons; add one of them, and use two rules for both"
_NO_ROLE = "a role that the job does not have; correct or remove onExitCodes.role"


def _pattern_compiles(spec: Obj) -> str | None:
    pattern = (spec.get("progress") or {}).get("pattern")
    if pattern is None:
        return None
    try:
        compile_pattern(pattern)
    except BadPattern as error:
        return f"spec.progress.pattern: {error}"
    return None


_CEL_PATTERN = "self.progress.pattern"
# `matches` of CEL is RE2 too; it fails for a pattern that is not valid, whatever the text.
_CEL_COMPILES = (
    f"({_CEL_PATTERN}.contains('(?P<') || {_CEL_PATTERN}.contains('(?<')) && "
    f"(''.matches({_CEL_PATTERN}) || !''.matches({_CEL_PATTERN}))"
)
_CEL_HAS_ROLE = "({})".format(" || ".join(f"(rule.onExitCodes.role == '{role}' && has(self.{role}))" for role in ROLES))

RULES = (
    Rule(
        "spec",
        "!has(self.stallSeconds) || !has(self.progress) || self.progress.enabled",
        _NO_LOG,
        _stall_needs_the_log,
        ".stallSeconds",
    ),
    Rule(
        "spec",
        f"!has(self.progress) || !has(self.progress.pattern) || ({_CEL_COMPILES})",
        # The field is part of the message: the API server leaves it out if `matches` fails.
        "progress.pattern is not a regular expression with named groups; correct it, for example step (?P<step>[0-9]+)",
        _pattern_compiles,
        ".progress.pattern",
    ),
    Rule(
        "spec",
        "!has(self.failurePolicy) || self.failurePolicy.rules.all(rule, has(rule.onExitCodes) != has(rule.onReasons))",
        f"a rule {_WHEN}",
        _failure_rules_say_when,
        ".failurePolicy.rules",
    ),
    Rule(
        "spec",
        "!has(self.failurePolicy) || self.failurePolicy.rules.all(rule, !has(rule.onExitCodes) || "
        f"!has(rule.onExitCodes.role) || {_CEL_HAS_ROLE})",
        f"a rule names {_NO_ROLE}",
        _failure_rules_name_roles,
        ".failurePolicy.rules",
    ),
)

"""Rules between fields, each written twice: in CEL for the API server, in Python for `pdj validate` and `pdj run`.

`tests/apiserver` applies both to the same invalid jobs and compares the results. A check gets an object of the job
file that matches the schema, with defaults, and returns the fault or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob import contract
from paddlejob.api.progress_pattern import BadPattern, compile_pattern

Obj = dict[str, Any]
Check = Callable[[Obj], str | None]
ChangeCheck = Callable[[Obj, Obj], str | None]

NAME_LIMIT = 63
ROLES = ("ps", "worker", "heter")


@dataclass(frozen=True)
class Rule:
    """A rule about one object. `field` is where the API server reports the fault."""

    level: str
    cel: str
    message: str
    check: Check
    field: str = ""


@dataclass(frozen=True)
class ChangeRule:
    """A rule about a change of the spec, from `oldSelf` to `self`."""

    cel: str
    message: str
    check: ChangeCheck
    field: str = ""


def _longest_pod_name(job: Obj) -> str:
    spec = job["spec"]
    names = []
    for role in ROLES:
        if role in spec:
            last = max(spec[role]["replicas"], spec[role].get("limits") or 1) - 1
            names.append(f"{job['metadata']['name']}-{role}-{last}")
    return max(names, key=len, default="")


def _name_fits(job: Obj) -> str | None:
    longest = _longest_pod_name(job)
    if len(longest) <= NAME_LIMIT:
        return None
    return (
        f"metadata.name: is too long: names of pods and Services have at most {NAME_LIMIT} characters, and {longest} "
        f"has {len(longest)}; shorten it by {len(longest) - NAME_LIMIT}"
    )


_CEL_LONGEST = "[{}].max()".format(
    ", ".join(
        f"has(self.spec.{role}) ? size(self.metadata.name) + {len(role) + 2} + "
        f"size(string((has(self.spec.{role}.limits) && self.spec.{role}.limits > self.spec.{role}.replicas ? "
        f"self.spec.{role}.limits : self.spec.{role}.replicas) - 1)) : 0"
        for role in ROLES
    )
)


def _name_is_a_label(job: Obj) -> str | None:
    name = job["metadata"]["name"]
    return None if re.fullmatch(contract.DNS_LABEL, name) else f"metadata.name: {NOT_A_LABEL}"


NOT_A_LABEL = (
    "is not a valid name; use lower-case letters, digits and '-', start and end with a letter or digit, and use at "
    f"most {NAME_LIMIT} characters"
)


def _name_fits_a_service(job: Obj) -> str | None:
    name = job["metadata"]["name"]
    if job["spec"].get("intranet") != "Service" or re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        return None
    return f"metadata.name: {_SERVICE_NAME}"


_SERVICE_NAME = (
    "with intranet: Service it is part of the names of Services, so it must start with a letter and contain only "
    "lower-case letters, digits and -; rename the job or use intranet: PodIP"
)


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


def _one_clean_policy(spec: Obj) -> str | None:
    new, old = spec.get("cleanPodPolicy"), spec.get("cleanPolicy")
    if new is None or old is None or new == old:
        return None
    return f"spec.cleanPolicy: {old} differs from cleanPodPolicy ({new}), which means the same; remove cleanPolicy"


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


def _manager_is_a_path(spec: Obj) -> str | None:
    given = spec.get("managedBy")
    return None if given is None or re.fullmatch(_MANAGER, given) else f"spec.managedBy: {_NOT_A_MANAGER}"


_MANAGER = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-A-Za-z0-9._~/]+"
_NOT_A_MANAGER = "is not the name of a controller; use a domain, a slash and a name, as in example.com/controller"


def _within_bounds(role: Obj) -> str | None:
    fewest, most = role.get("requests") or 1, role.get("limits")
    if fewest > role["replicas"] or (most is not None and role["replicas"] > most):
        return (
            f"replicas: {role['replicas']} is outside {fewest} to {most or 'any'}; "
            "choose a value in that range or change requests and limits"
        )
    return None


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

_CEL_TOPOLOGY = "self.schedulingPolicy.topology"
_CEL_NO_TOPOLOGY = f"!has(self.schedulingPolicy) || !has({_CEL_TOPOLOGY})"
_CEL_LABEL_KEY = contract.LABEL_KEY.replace("\\", r"\\")
_CEL_HAS_ROLE = "({})".format(" || ".join(f"(rule.onExitCodes.role == '{role}' && has(self.{role}))" for role in ROLES))
_CEL_TOTAL = " + ".join(f"(has(self.{role}) ? self.{role}.replicas : 0)" for role in ROLES)

RULES = (
    Rule(
        "root",
        f"{_CEL_LONGEST} <= {NAME_LIMIT}",
        "metadata.name: is too long: it is part of the names of pods and Services (NAME-worker-0), which have at most "
        f"{NAME_LIMIT} characters; shorten it",
        _name_fits,
    ),
    Rule(
        "root",
        # Stored jobs keep working: a job has no status when it is created, and gets one before its first pod.
        f"has(self.status) || self.metadata.name.matches('^{contract.DNS_LABEL}$')",
        f"metadata.name: {NOT_A_LABEL}",
        _name_is_a_label,
    ),
    Rule(
        "root",
        "self.spec.intranet != 'Service' || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        f"metadata.name: {_SERVICE_NAME}",
        _name_fits_a_service,
    ),
    Rule("spec", "has(self.worker)", _NO_WORKER, _has_worker, ".worker"),
    Rule("spec", "!has(self.heter) || has(self.ps)", _NO_SERVERS, _heter_has_servers, ".ps"),
    Rule(
        "spec",
        "!has(self.cleanPolicy) || !has(self.cleanPodPolicy) || self.cleanPolicy == self.cleanPodPolicy",
        "differs from cleanPodPolicy, which means the same; remove cleanPolicy",
        _one_clean_policy,
        ".cleanPolicy",
    ),
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
    Rule(
        "spec",
        f"!has(self.managedBy) || self.managedBy.matches('^{_MANAGER}$')",
        _NOT_A_MANAGER,
        _manager_is_a_path,
        ".managedBy",
    ),
    Rule(
        "role",
        "(!has(self.requests) || self.requests <= self.replicas) && "
        "(!has(self.limits) || self.replicas <= self.limits)",
        "is outside requests to limits; choose a value in that range or change requests and limits",
        _within_bounds,
        ".replicas",
    ),
)
"""Messages are constants: an expression with string(number) exceeds the API server's cost limit."""

SUSPENDED_ONLY = "can be changed only while the job is suspended; set spec.suspend to true before or in the same update"
_CEL_SUSPENDED = "oldSelf.suspend || self.suspend"


def _is_suspended(new: Obj, old: Obj) -> bool:
    """The update that suspends a job may also change it: Kueue restores the template when it stops a job."""
    return bool(old.get("suspend") or new.get("suspend"))


def _fixed(field: str) -> ChangeRule:
    """A field of the spec that never changes. It may be absent on both sides."""
    message = "cannot be changed once the job exists; delete the job and create it again"

    def check(new: Obj, old: Obj) -> str | None:
        return f"spec.{field}: {message}" if new.get(field) != old.get(field) else None

    cel = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    return ChangeRule(cel, message, check, f".{field}")


def _role_fixed(role: str) -> ChangeRule:
    """A role is neither added nor removed and keeps its bounds; ps and heter also keep their number of pods."""
    fields = ("requests", "limits") if role == "worker" else ("replicas", "requests", "limits")
    message = (
        "only its template can be changed, and only while the job is suspended; to change "
        f"{', '.join(fields)}, delete the job and create it again"
    )

    def check(new: Obj, old: Obj) -> str | None:
        before, after = old.get(role), new.get(role)
        if before is None or after is None:
            same = before is after
        else:
            same = all(before.get(field) == after.get(field) for field in fields)
        return None if same else f"spec.{role}: {message}"

    equal = " && ".join(
        f"has(self.{role}.{field}) == has(oldSelf.{role}.{field}) && "
        f"(!has(self.{role}.{field}) || self.{role}.{field} == oldSelf.{role}.{field})"
        for field in fields
    )
    cel = f"has(self.{role}) == has(oldSelf.{role}) && (!has(self.{role}) || ({equal}))"
    return ChangeRule(cel, message, check, f".{role}")


def _template_fixed(role: str) -> ChangeRule:
    def check(new: Obj, old: Obj) -> str | None:
        if _is_suspended(new, old) or role not in new or role not in old:
            return None
        same = new[role]["template"] == old[role]["template"]
        return None if same else f"spec.{role}.template: {SUSPENDED_ONLY}"

    cel = (
        f"{_CEL_SUSPENDED} || !has(self.{role}) || !has(oldSelf.{role}) || "
        f"self.{role}.template == oldSelf.{role}.template"
    )
    return ChangeRule(cel, f"template {SUSPENDED_ONLY}", check, f".{role}")


def _scalable(new: Obj, old: Obj) -> str | None:
    if _is_suspended(new, old) or new.get("elastic", 0) >= 1 or "worker" not in new or "worker" not in old:
        return None
    if new["worker"]["replicas"] == old["worker"]["replicas"]:
        return None
    return f"spec.worker: {_NOT_ELASTIC}"


_NOT_ELASTIC = (
    "replicas can be changed while the job runs only if spec.elastic is 1 or more; suspend the job first, or create "
    "it with elastic: 1"
)

CHANGE_RULES = (
    *(_fixed(field) for field in ("intranet", "withGloo", "elastic", "schedulingPolicy", "managedBy")),
    *(_role_fixed(role) for role in ROLES),
    *(_template_fixed(role) for role in ROLES),
    ChangeRule(
        f"{_CEL_SUSPENDED} || self.elastic >= 1 || !has(self.worker) || !has(oldSelf.worker) || "
        "self.worker.replicas == oldSelf.worker.replicas",
        _NOT_ELASTIC,
        _scalable,
        ".worker",
    ),
)

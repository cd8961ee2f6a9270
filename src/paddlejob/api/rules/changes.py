"""What may change in a job that exists."""

from __future__ import annotations

from paddlejob.api.rules.rule import ROLES, ChangeRule, Obj

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
    *(_fixed(field) for field in ("intranet", "withGloo", "device", "elastic", "schedulingPolicy", "managedBy")),
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

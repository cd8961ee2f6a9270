"""The name of a job, which becomes part of the names of its pods and Services."""

from __future__ import annotations

import re

from paddlejob import contract
from paddlejob.api.rules.rule import NAME_LIMIT, ROLES, Obj, Rule


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
        f"metadata.name: too long: names of pods and Services have at most {NAME_LIMIT} characters, and {longest} "
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

RULES = (
    Rule(
        "root",
        f"{_CEL_LONGEST} <= {NAME_LIMIT}",
        "metadata.name: too long: it is part of the names of pods and Services (NAME-worker-0), which have at most "
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
)

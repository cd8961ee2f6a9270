"""Paddle's launcher in a job with parameter servers: it learns of servers from nothing that a pod has, and hangs."""

from __future__ import annotations

import re
from typing import Any

from paddlejob.api.template import training_container
from paddlejob.api.types import PaddleJob, Role

LAUNCHER = re.compile(r"(?<![\w.])paddle\.distributed\.launch(?![\w.])|(?<![\w.-])fleetrun(?![\w.-])")


def launcher_warnings(job: PaddleJob) -> list[str]:
    """One warning for each role that would hang because of the launcher."""
    if Role.PS not in job.spec.roles:
        return []
    return [
        f"spec.{role}: {found} waits forever in a job with parameter servers; run the program directly, "
        "for example with command: [python, train.py]"
        for role, spec in job.spec.roles.items()
        if (found := _launcher(spec.template))
    ]


def _launcher(template: dict[str, Any]) -> str:
    container = training_container(template["spec"]["containers"])
    arguments = [*(container.get("command") or []), *(container.get("args") or [])]
    found = LAUNCHER.search("\n".join(str(one) for one in arguments))
    return found[0] if found else ""

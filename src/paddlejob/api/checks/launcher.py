"""Paddle's launcher and parameter servers: it learns of a job's servers from nothing that a pod has, and hangs.

So it does if it shall start servers itself: the variables of a pod make it look for peers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from paddlejob.api.fault import Fault, Severity
from paddlejob.api.rules import Obj
from paddlejob.api.template import training_container

LAUNCHER = re.compile(r"(?<![\w.])paddle\.distributed\.launch(?![\w.])|(?<![\w.-])fleetrun(?![\w.-])")

PROGRAM = re.compile(r"\.(?:py|sh)(?!\S)|&&|[;|]")
"""What ends the options of the launcher."""
STARTS_SERVERS = re.compile(r"--(?:server_num|servers|trainer_num|trainers)(?=[=\s])|--run_mode[=\s]\s{0,8}ps(?!\S)")


def check_launcher(templates: Mapping[str, Obj]) -> Iterator[Fault]:
    """One finding for each role, by name, that would hang because of the launcher."""
    for role, template in templates.items():
        containers = (template.get("spec") or {}).get("containers") or [{}]
        container = training_container(containers)
        arguments = [*(container.get("command") or []), *(container.get("args") or [])]
        text = "\n".join(str(one) for one in arguments)
        found = LAUNCHER.search(text)
        if found and "ps" in templates:
            message = (
                f"{found[0]} waits forever in a job with parameter servers; run the program directly, for example with "
                "command: [python, train.py]"
            )
            yield Fault(("spec", role), message, Severity.WARNING)
        elif found and (option := STARTS_SERVERS.search(PROGRAM.split(text[found.end() :], maxsplit=1)[0])):
            message = (
                f"{found[0]} {' '.join(option[0].split())} waits forever in a pod; run the program directly and let "
                "the job have servers: pdj run train.py --ps N, or spec.ps in a job file"
            )
            yield Fault(("spec", role), message)

"""The agent of a pod, which starts its program again in place: its ConfigMap, its volume and its command."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from paddlejob import contract
from paddlejob.api.template import training_container
from paddlejob.api.types import PaddleJob, Role
from paddlejob.plan import names
from paddlejob.plan.manifests.metadata import labels, metadata
from paddlejob.plan.world import AgentChannel, World

UNAVAILABLE = "RestartsWithNewPods"
"""The reason of the event and the condition that say so."""
VOLUME = "paddlejob-agent"
PROGRAM = f"{contract.AGENT_DIRECTORY}/agent.py"
ALONE = "-IS"
"""Without modules of the user, which may hide those of Python, or load what the program needs into the agent too."""
CA = "ca.crt"
TOKEN_SECONDS = 3600
PYTHON = re.compile(r"(.*/)?python(\d+(\.\d+)?)?")
SHELL = re.compile(r"(.*/)?(ba|da|a|z)?sh")
TOOL = re.compile(r"(.*/)?(fleetrun|paddleformers-cli|erniekit)")
"""Programs in Python, whose images have an interpreter."""
FIND_PYTHON = (
    'for p in python3 python; do "$p" -c "import sys; sys.exit(sys.version_info < (3, 8))" 2>/dev/null '
    f'&& exec "$p" {ALONE} {PROGRAM} -- "$@"; done; exec "$@"'
)
"""Without a suitable Python in the image, the program starts without an agent."""

Manifest = dict[str, Any]


def obstacle(job: PaddleJob) -> str:
    """Why the pods of this job have no agents; empty if they can have them. All need one for any to be of use."""
    if job.spec.live_workers:
        return "its workers are replaced alone while the others train"
    found = ((role, _obstacle(spec.template["spec"])) for role, spec in job.spec.roles.items())
    return next((f"the template of {role} {why}" for role, why in found if why), "")


def unavailable(job: PaddleJob, world: World) -> str:
    """Why a job that asks for restarts in place cannot have any; empty if it can, or does not ask."""
    if not job.spec.wants_agents or world.one_machine:
        return ""
    why = obstacle(job) or ("" if world.channel else "the operator runs without --agent-url")
    return f"the job restarts with new pods instead of in place, because {why}" if why else ""


def _obstacle(spec: Manifest) -> str:
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    container = training_container(spec["containers"])
    command = container.get("command") or []
    mounts = [one.get("mountPath") or "" for one in container.get("volumeMounts") or []]
    if len(spec["containers"]) > 1 or sidecars:
        return "has several containers, which restart together"
    if not command:
        return "has no command, so the image decides what runs"
    if not any(known.fullmatch(command[0]) for known in (PYTHON, SHELL, TOOL)):
        return f"has a command that starts with {command[0][:80]}, which is neither Python nor a shell"
    if container.get("lifecycle") or spec.get("activeDeadlineSeconds"):
        return "has lifecycle hooks or activeDeadlineSeconds, which concern a pod"
    if any(one.startswith(contract.AGENT_DIRECTORY) for one in mounts):
        return f"mounts a volume at {contract.AGENT_DIRECTORY}"
    return ""


def config_map(job: PaddleJob, channel: AgentChannel) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, name(job, channel), labels(job)),
        "immutable": True,
        "data": {_key(path): content for path, content in _files(channel).items()},
    }


def name(job: PaddleJob, channel: AgentChannel) -> str:
    content = json.dumps(_files(channel), sort_keys=True).encode()
    return names.agent(job, hashlib.sha256(content).hexdigest()[:6])


def _files(channel: AgentChannel) -> dict[str, str]:
    return {**channel.files, CA: channel.ca}


def _key(path: str) -> str:
    """Keys of a ConfigMap have no slashes."""
    return path.replace("/", ".")


def add_agent(pod: Manifest, job: PaddleJob, attempt: int, channel: AgentChannel) -> None:
    """Have the agent start the program, which notices nothing of it."""
    spec = pod["spec"]
    container = training_container(spec["containers"])
    container["command"] = _wrapped(container["command"])
    container["env"] = [
        *(container.get("env") or []),
        {"name": contract.ENV_AGENT_URL, "value": channel.url},
        {"name": contract.ENV_AGENT_ATTEMPT, "value": str(attempt)},
    ]
    mount = {"name": VOLUME, "mountPath": contract.AGENT_DIRECTORY, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
    token = {"audience": contract.AGENT_AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": "token"}
    items = [{"key": _key(path), "path": path} for path in _files(channel)]
    sources = [{"serviceAccountToken": token}, {"configMap": {"name": name(job, channel), "items": items}}]
    spec["volumes"] = [*(spec.get("volumes") or []), {"name": VOLUME, "projected": {"sources": sources}}]


def _wrapped(command: list[str]) -> list[str]:
    if PYTHON.fullmatch(command[0]):
        return [command[0], ALONE, PROGRAM, "--", *command]
    shell = command[0] if SHELL.fullmatch(command[0]) else "sh"
    return [shell, "-c", FIND_PYTHON, shell, *command]


def order_environment(job: PaddleJob, role: Role, attempt: int) -> dict[str, str]:
    """The variables that differ from those with which the pod started; a template's own take precedence."""
    containers = job.spec.roles[role].template["spec"]["containers"]
    given = {one["name"] for one in training_container(containers).get("env") or []}
    return {} if contract.ENV_JOB_ID in given else {contract.ENV_JOB_ID: f"{job.metadata.uid}-{attempt}"}

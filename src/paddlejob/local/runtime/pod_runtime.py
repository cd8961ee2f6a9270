"""What the containers of a job are started with: files, environment, working directory and command."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.agent.agent import HOOK
from paddlejob.api.checks.names import unsafe_names
from paddlejob.api.quantity import limits, parse_quantity
from paddlejob.errors import NotPossible
from paddlejob.local.job import LocalJob
from paddlejob.local.pod import LocalPod
from paddlejob.local.runtime import volumes
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, expand, secrets
from paddlejob.local.runtime.env import MARK, base_environment
from paddlejob.local.runtime.images import argv, find_image
from paddlejob.local.runtime.processes import Processes, ProcessSpec
from paddlejob.local.sandbox.mounts import Mount
from paddlejob.local.state.store import JobStore

HOSTS = Path("/etc/hosts")
LOG_OPTION = "--log_dir"
"""The same as an option of the launcher, over which the variable would win."""
HOSTNAME = "HOSTNAME"
THREADS = "OMP_NUM_THREADS"
"""Without it each process starts a thread for every CPU of the machine, whatever its limit."""
TERMINATION_BYTES = 4096
Manifest = dict[str, Any]


class PodRuntime:
    def __init__(self, store: JobStore, processes: Processes) -> None:
        self._store = store
        self._processes = processes

    def prepare_volumes(self, job: LocalJob, pod: LocalPod) -> None:
        """Create the directories of the pod's volumes."""
        for fault in unsafe_names(pod.manifest["spec"], ("spec",)):
            raise NotPossible(str(fault))
        facts = _facts(job, pod)
        for volume in pod.manifest["spec"].get("volumes") or []:
            own = pod.own / "volumes"
            source = volumes.find_source(volume, job.key[0], own, job.options, self._store)
            volumes.create(volume, source, facts)
            pod.sources[volume["name"]] = source

    def process_spec(self, job: LocalJob, pod: LocalPod, container: Manifest) -> ProcessSpec:
        hosts = {f"{peer.dns_name}.{job.key[0]}.svc": peer.address for peer in job.peers(pod)}
        given = environment(container, _facts(job, pod))
        hostname = pod.manifest["spec"].get("hostname") or ""
        mounts = self._mounts(job, pod, container, hosts | ({hostname: pod.seen.address} if hostname else {}), given)
        if self._processes.isolated:
            hosts = {}
        variables = {name: _resolved(value, hosts) for name, value in given.items()}
        base = base_environment(job.options, self._store) | pod.device_variables
        own = {HOSTNAME: hostname or pod.seen.name, **variables, MARK: pod.seen.uid}
        log = job.log(pod, container)
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [_resolved(expand(argument, variables), hosts) for argument in argv(container, job.options)]
        env = {**_defaults(container, command, log), **base, **own}
        spec = ProcessSpec(
            id=f"{pod.seen.uid}/{container['name']}",
            argv=command,
            env={**env, "PYTHONPATH": os.pathsep.join(filter(None, [HOOK, env.get("PYTHONPATH")]))},
            cwd=self._working_directory(job, pod, container, mounts),
            log=str(log),
            stage=str(self._store.stage()),
            mounts=mounts,
            hostname=hostname,
        )
        _check_text(spec)
        return spec

    def _mounts(
        self,
        job: LocalJob,
        pod: LocalPod,
        container: Manifest,
        hosts: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> list[Mount]:
        """Its volumes, the file of its termination message, and a hosts file that names the pods of the job."""
        if not self._processes.isolated:
            return []
        mounts = volumes.mounts_of(container, pod.sources, job.options.host_paths, variables)
        if container.get("terminationMessagePath"):
            file = _termination_file(pod, container)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            mounts.append({"target": container["terminationMessagePath"], "source": str(file.absolute())})
        if hosts:
            mounts.append({"target": str(HOSTS), "source": str(_hosts_file(pod, hosts))})
        mounts = [{**mount, "target": posixpath.normpath(f"/{mount['target'].lstrip('/')}")} for mount in mounts]
        if any(mount["target"] == "/" for mount in mounts):
            raise NotPossible(f"container {container['name']} mounts something at /; choose a path below it")
        return mounts

    def _working_directory(self, job: LocalJob, pod: LocalPod, container: Manifest, mounts: list[Mount]) -> str:
        """The container's, else the image's; the image's directory is also mounted at its path in the image."""
        image = find_image(container.get("image") or "", job.options)
        if self._processes.isolated:
            mounts += [{"target": path, "source": str(source), "image": True} for path, source in image.files.items()]
        if image.cwd:
            return container.get("workingDir") or image.cwd
        directory = image.directory
        if directory is None:
            directory = pod.own / "image"
            directory.mkdir(parents=True, exist_ok=True)
        elif image.bundled:
            directory = volumes.copy_image(directory, pod.own, image.renamed)
        given = container.get("workingDir") or ""
        path = image.workdir or given
        hidden = any(Path(mount["target"]) in (Path(path), *Path(path).parents) for mount in mounts)
        if self._processes.isolated and path and not hidden and not Path(path).exists():
            mounts.append({"target": path, "source": str(directory)})
            return given or path
        return given or str(directory)


def termination_message(pod: LocalPod, container: Manifest) -> str:
    """What the container wrote to its terminationMessagePath."""
    try:
        with _termination_file(pod, container).open("rb") as file:
            return file.read(TERMINATION_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def _facts(job: LocalJob, pod: LocalPod) -> PodFacts:
    return PodFacts(
        manifest=pod.manifest,
        address=pod.seen.address,
        uid=pod.seen.uid,
        node=pod.seen.node,
        config_maps={**config_maps(job.options.objects), **job.config_maps},
        secrets=secrets(job.options.objects),
    )


def _defaults(container: Manifest, command: list[str], log: Path) -> dict[str, str]:
    """Variables that the user's own environment and the template override."""
    cpus = limits(container).get("cpu")
    threads = {THREADS: str(max(1, int(parse_quantity(cpus))))} if cpus else {}
    own_logs = any(LOG_OPTION in argument for argument in command)
    return threads if own_logs else {contract.ENV_LOG_DIR: str(log.with_suffix("")), **threads}


def _termination_file(pod: LocalPod, container: Manifest) -> Path:
    return pod.own / "termination" / str(container["name"])


def _check_text(spec: ProcessSpec) -> None:
    """Raise NotPossible for text that no program can be started with."""
    for name, value in [*spec.env.items(), *(("the command", one) for one in spec.argv), ("workingDir", spec.cwd)]:
        try:
            encoded = os.fsencode(value)
        except UnicodeEncodeError:
            encoded = b"\0"
        if b"\0" in encoded:
            raise NotPossible(f"{name} contains a character that no program can receive; remove it")
    for name in spec.env:
        if not name or "=" in name or "\0" in name:
            raise NotPossible(f"{name!r} is not the name of an environment variable; rename it")


def _resolved(text: str, hosts: Mapping[str, str]) -> str:
    """Names replaced by addresses; without a mount namespace no hosts file resolves them."""
    if not hosts or ".svc" not in text:
        return text
    longest_first = sorted(hosts, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda name: hosts[name[0]], text)


def _hosts_file(pod: LocalPod, hosts: Mapping[str, str]) -> Path:
    """The entries of this machine's file, and the names of the job's pods."""
    pod.own.mkdir(parents=True, exist_ok=True)
    file = pod.own / "hosts"
    lines = [f"{address} {name} {name.partition('.')[0]}" for name, address in hosts.items()]
    file.write_text("\n".join([HOSTS.read_text() if HOSTS.exists() else "", *lines, ""]))
    return file

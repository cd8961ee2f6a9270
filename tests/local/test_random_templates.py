"""Random pod templates on the embedded engine: none hangs, ends the engine or writes outside its directories."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlejob.api.validate import faults
from paddlejob.local.engine import LocalEngine
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import preflight
from paddlejob.local.state.store import JobStore

Manifest = dict[str, Any]
BATCH = 5
PATIENCE = 90.0
"""Seconds for a batch; one job takes about one."""
WATCHED = tuple(
    Path(name) for name in ("/nas", "/data-of-a-job", "/etc/paddle.conf", "/up", "/usr/local/of-a-job", "/x")
)
SWEPT = tuple(Path(name) for name in ("/etc", "/home", "/opt", "/usr/local", "/var/lib"))
"""Directories of the machine in which nothing may change: 22,000 files, read in 0.2 s."""
OUTSIDE = "@outside@"
"""Replaced by a directory that nothing may be written to, except by a volume that names it."""
MOUNT_POINTS = ("mounted", "a/b", "log")
"""Paths outside that templates mount something at."""
NAMES = st.sampled_from(["data", "cache", "conf", "key", "../escape", "a/b", ".."])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PATHS = st.sampled_from(
    [
        "/nas",
        "/nas",
        "/nas/sub/dir",
        "/data-of-a-job",
        "/etc/paddle.conf",
        "relative/path",
        "/dev/shm",
        "/nas/../up",
        "/",
        "/proc",
        "/usr/local/of-a-job",
        f"{OUTSIDE}/mounted",
        f"{OUTSIDE}/a/b",
    ]
)
MISSPELT = st.sampled_from(["x", "x", "x", "../../x", "/x", "a/../../../x"])
SCRIPTS = [
    "exit 7",
    "env; pwd; ls -la",
    "kill -9 $$",
    "sleep 300 & exit 0",
    "echo $(NAME) $$(NAME)",
    "echo m > /nas/log",
]
PLAIN = [["true"], ["true"], ["false"], ["sleep", "0.2"], ["no-such-command"], [""]]
COMMANDS = st.sampled_from([*PLAIN, *(["bash", "-c", script] for script in SCRIPTS)])
ENDLESS = st.sampled_from([["sleep", "300"], ["bash", "-c", "trap '' TERM; while true; do sleep 0.1; done"]])
QUANTITY = st.sampled_from(["100m", "1", "64Mi", "0", "1e3", "5G", 1])


def made(**fields: Any) -> st.SearchStrategy[Manifest]:
    """A mapping in which every field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


def listed(one: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(one, max_size=most)


references = st.fixed_dictionaries({"name": st.sampled_from(["conf", "absent"])}, optional={"optional": st.booleans()})
key_references = st.builds(lambda one, key: {**one, "key": key}, references, st.sampled_from(["lr", "absent", "raw"]))
value_sources = st.one_of(
    st.fixed_dictionaries({"configMapKeyRef": key_references}),
    st.fixed_dictionaries({"secretKeyRef": key_references}),
    st.fixed_dictionaries({"fieldRef": st.sampled_from([{"fieldPath": "metadata.name"}, {"fieldPath": "spec.x"}])}),
    st.fixed_dictionaries({"resourceFieldRef": st.sampled_from([{"resource": "limits.cpu"}, {"resource": "x"}])}),
)
variables = st.one_of(
    st.fixed_dictionaries({"name": st.sampled_from(["NAME", "PATH", "A=B", "", "PADDLE_PORT"]), "value": TEXT}),
    st.fixed_dictionaries({"name": st.just("NAME"), "valueFrom": value_sources}),
)
env_sources = st.one_of(
    st.fixed_dictionaries({"configMapRef": references}), st.fixed_dictionaries({"secretRef": references})
)
items = listed(st.fixed_dictionaries({"key": st.sampled_from(["lr", "absent"]), "path": MISSPELT}), 1)
sources = st.one_of(
    st.fixed_dictionaries({"emptyDir": made(medium=st.sampled_from(["Memory", ""]), sizeLimit=QUANTITY)}),
    st.builds(lambda one, files: {"configMap": {**one, "items": files}}, references, items),
    st.builds(lambda one, files: {"secret": {"secretName": one["name"], "items": files}}, references, items),
    st.fixed_dictionaries({"persistentVolumeClaim": st.builds(lambda name: {"claimName": name}, NAMES)}),
    st.fixed_dictionaries({"hostPath": st.builds(lambda path: {"path": path}, st.just(f"{OUTSIDE}/lent"))}),
    st.builds(
        lambda path: {"downwardAPI": {"items": [{"path": path, "fieldRef": {"fieldPath": "metadata.name"}}]}}, MISSPELT
    ),
    st.just({"csi": {"driver": "x"}}),
    st.just({}),
)
volumes = st.builds(lambda name, source: {"name": name, **source}, NAMES, sources)
mounts = st.fixed_dictionaries(
    {"name": NAMES, "mountPath": PATHS}, optional={"subPath": MISSPELT, "readOnly": st.booleans()}
)
handlers = st.one_of(
    st.fixed_dictionaries({"exec": st.fixed_dictionaries({"command": st.one_of(COMMANDS, ENDLESS)})}),
    st.just({"sleep": {"seconds": 1}}),
    st.just({"httpGet": {"port": 80}}),
)
probes = st.builds(lambda handler: {"periodSeconds": 1, **handler}, st.just({"exec": {"command": ["false"]}}))
common: dict[str, Any] = {
    "env": listed(variables, 3),
    "envFrom": listed(env_sources, 1),
    "volumeMounts": listed(mounts),
    "workingDir": st.sampled_from(["/", "/absent", "relative", "/nas"]),
    "livenessProbe": probes,
    "readinessProbe": probes,
    "lifecycle": made(postStart=handlers, preStop=handlers),
    "resources": made(limits=made(cpu=QUANTITY, memory=QUANTITY), requests=made(cpu=QUANTITY)),
    "terminationMessagePath": st.sampled_from(["/nas/log", "/dev/termination-log", "relative", f"{OUTSIDE}/log"]),
    "securityContext": st.just({"runAsUser": 1000}),
    "args": st.just(["argument"]),
}


def containers(names: list[str], commands: st.SearchStrategy[list[str]], **more: Any) -> st.SearchStrategy[Manifest]:
    required = {
        "name": st.sampled_from(names),
        "image": st.sampled_from(["program", "mnist:v1", ""]),
        "command": commands,
        **more,
    }
    return st.fixed_dictionaries(required, optional=common)


pods = st.fixed_dictionaries(
    {
        "containers": st.builds(
            lambda first, others: [first, *others],
            containers(["paddle", "main", "../name"], COMMANDS),
            # A container named paddle is the one that trains, so its command must end.
            listed(st.one_of(containers(["paddle", "side"], COMMANDS), containers(["side", "other"], ENDLESS))),
        ),
        "terminationGracePeriodSeconds": st.sampled_from([0, 1]),
    },
    optional={
        "volumes": listed(volumes, 3),
        "initContainers": st.one_of(
            listed(containers(["first", "second", "paddle"], COMMANDS)),
            listed(containers(["keeper"], st.one_of(COMMANDS, ENDLESS), restartPolicy=st.just("Always")), 1),
        ),
        "hostname": st.sampled_from(["trainer", "x.y", ""]),
        "hostAliases": st.just([{"ip": "127.0.0.9", "hostnames": ["x"]}]),
        "securityContext": st.just({"fsGroup": 1}),
        "nodeSelector": st.just({"disk": "ssd"}),
        "shareProcessNamespace": st.booleans(),
    },
)


def _repaired(pod: Manifest) -> Manifest:
    """The same with unique names and with mounts of volumes that exist, so that more of it runs."""
    volumes_ = [{**one, "name": f"volume-{number}"} for number, one in enumerate(pod.get("volumes") or [])]
    count = itertools.count()

    def repaired(container: Manifest, name: str) -> Manifest:
        found = [
            {**one, "name": volumes_[next(count) % len(volumes_)]["name"]}
            for one in container.get("volumeMounts") or []
            if volumes_
        ]
        return {**container, "name": name, "volumeMounts": found}

    first, *others = pod["containers"]
    inits = [repaired(one, f"init-{number}") for number, one in enumerate(pod.get("initContainers") or [])]
    sides = [repaired(one, f"side-{number}") for number, one in enumerate(others)]
    return {**pod, "volumes": volumes_, "initContainers": inits, "containers": [repaired(first, "paddle"), *sides]}


templates_ = st.one_of(pods.map(_repaired), pods.map(_repaired), pods.map(_repaired), pods)
OBJECTS: tuple[Manifest, ...] = (
    {"kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"lr": "0.1", "raw": "x"}},
    {"kind": "ConfigMap", "metadata": {"name": "numbers"}, "data": {"lr": 0.1}},
    {"kind": "Secret", "metadata": {"name": "conf"}, "data": {"lr": "//79", "raw": "AAAA"}},
)


ENDED: Counter[str] = Counter()
"""How the jobs ended, for `pytest -s`."""


class Stage:
    """A fresh state directory, and a directory outside it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pdj-random-"))
        self.outside = self.folder / "outside"
        (self.outside / "lent").mkdir(parents=True)
        (self.outside / "a").mkdir()
        (self.folder / "code").mkdir()
        self.store = JobStore(self.folder / "state")
        self.options = RunOptions(folder=str(self.folder / "code"), objects=OBJECTS, overcommit=True)

    def document(self, name: str, pod: Manifest) -> Manifest:
        return {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {
                "backoffLimit": 0,
                "worker": {"replicas": 1, "template": {"spec": _placed(pod, str(self.outside))}},
            },
        }

    def files_outside(self) -> set[str]:
        """What is not in the state directory, the directory of the code or the volume that was lent.

        The mount points that templates name are created and left empty, as documented.
        """
        mount_points = {self.outside / name for name in MOUNT_POINTS if _is_empty(self.outside / name)}
        found = {str(path) for path in {*self.folder.glob("*"), *self.outside.rglob("*")} - mount_points}
        found |= {str(path) for path in WATCHED if path.exists()}
        lent = str(self.outside / "lent/")
        return {path for path in found if not path.startswith(f"{lent}/") and path != str(self.store.root)}


def files_of_the_machine() -> dict[str, tuple[int, int]]:
    """The entries of the root directory and all files of the swept directories, each with its size and its time."""
    found = {str(path): (0, 0) for path in (*Path("/").iterdir(), *Path.home().iterdir())}
    for folder, folders, files in (step for swept in SWEPT for step in os.walk(swept)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*folders, *files):
            path = f"{folder}/{name}"
            with suppress(FileNotFoundError):
                stat = os.lstat(path)
                found[path] = (stat.st_size, stat.st_mtime_ns) if name in files else (0, 0)
    return found


@pytest.fixture(scope="module", autouse=True)
def unchanged_machine() -> Iterator[None]:
    before = files_of_the_machine()
    yield
    after = files_of_the_machine()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert not changed, f"these files of the machine changed: {sorted(changed)[:20]}"


def _is_empty(path: Path) -> bool:
    return not any(path.iterdir()) if path.is_dir() else path.exists() and not path.stat().st_size


def _placed(part: Any, outside: str) -> Any:
    if isinstance(part, dict):
        return {key: _placed(value, outside) for key, value in part.items()}
    if isinstance(part, list):
        return [_placed(one, outside) for one in part]
    return part.replace(OUTSIDE, outside) if isinstance(part, str) else part


async def _run(stage: Stage, documents: list[Manifest]) -> None:
    async with LocalEngine(stage.store, Machine("random", 64, 1 << 40)) as engine:
        keys = [await engine.submit(document, stage.options) for document in documents]
        ended = asyncio.gather(*(engine.wait_until_idle(key) for key in keys))
        try:
            await asyncio.wait_for(ended, PATIENCE)
        except TimeoutError:
            stuck = [(key[1], engine.status(key)) for key in keys if not _finished(engine, key)]
            raise AssertionError(f"these jobs hang: {stuck}") from None
        assert not engine.lost.is_set()
        for key in keys:
            status = engine.status(key)
            assert status and status.finished, (key, status)
            assert status.message or status.phase == "Completed", (key, status)
            ENDED[status.message.partition(":")[2][:60] if status.phase != "Completed" else "Completed"] += 1
        good = engine.status(("default", "good"))
        assert good and good.phase == "Completed", good


def _finished(engine: LocalEngine, key: tuple[str, str]) -> bool:
    status = engine.status(key)
    return bool(status and status.finished)


def check(templates: list[Manifest]) -> None:
    """All of them at once on one engine, beside a job that must complete."""
    stage = Stage()
    try:
        numbers = itertools.count()
        documents = [stage.document(f"random-{next(numbers)}", pod) for pod in templates]
        documents = [document for document in documents if not faults(document)]
        for document in documents:
            _preflight(stage, document)
        before = stage.files_outside()
        good = stage.document("good", {"containers": [{"name": "x", "image": "program", "command": ["true"]}]})
        asyncio.run(_run(stage, [*documents, good]))
        assert stage.files_outside() == before
    finally:
        shutil.rmtree(stage.folder, ignore_errors=True)


def _preflight(stage: Stage, document: Manifest) -> None:
    """Whatever it finds, it does not raise; the engine gets the job all the same, as a file of an older version."""
    from paddlejob.api.types import PaddleJob

    checked = preflight(
        PaddleJob.model_validate(document), stage.options, stage.store, Machine("random", 64, 1 << 40), True
    )
    assert all(isinstance(error, str) for error in checked.errors)


def settings_for(count: int) -> settings:
    return settings(
        max_examples=count // BATCH,
        deadline=None,
        derandomize=True,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@settings_for(25)
@given(st.lists(templates_, min_size=BATCH, max_size=BATCH))
def test_random_templates_end_with_a_reason(templates: list[Manifest]):
    check(templates)


@pytest.mark.full
@settings_for(500)
@given(st.lists(templates_, min_size=BATCH, max_size=BATCH))
def test_500_random_templates_end_with_a_reason(templates: list[Manifest]):
    check(templates)
    print(sum(ENDED.values()), "jobs have ended")

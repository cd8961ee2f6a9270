"""Whatever starts a job, or only looks at it, finds the same faults in it, with the same messages, each once."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import paddlejob as pj
from paddlejob.api.types import Status
from paddlejob.errors import InvalidJob, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobStore
from tests.support.builders import NOON, document
from tests.support.called_pdj import Called
from tests.support.cluster_verbs import Pdj, api, called
from tests.support.job_views import ENDED
from tests.support.scripted_cluster import ScriptedCluster

__all__ = ["api", "called"]
Object = dict[str, Any]
RATES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rates"}}
KEY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
ENDED_WELL = {"phase": "Completed", "attempt": 1, **ENDED}


def job(name: str = "mnist", container: Object | None = None, **pod: Any) -> Object:
    made = document(name, workers=1)
    made["metadata"]["namespace"] = "default"
    made["spec"]["worker"]["template"]["spec"] |= pod
    made["spec"]["worker"]["template"]["spec"]["containers"][0] |= {"command": ["true"], **(container or {})}
    return made


def doubtful() -> Object:
    made = document(ps=1, workers=2)
    made["metadata"]["namespace"] = "default"
    server, worker = (made["spec"][role]["template"]["spec"]["containers"][0] for role in ("ps", "worker"))
    server["command"] = ["true", "fleetrun"]
    worker |= {"command": ["echo a b"], "args": ["mpirun", "--output_dir=/out", "“model”"]}
    return made


Found = tuple[set[str], set[str]]
"""Errors and warnings, without the file and the line."""
Entry = Callable[[Path], Awaitable[Found]]


def plain(text: str) -> str:
    return re.sub(r"^(?:\S*job\.yaml[\d:]*|job mnist)(?:: the file)?:? ", "", text)


def printed(done: Called) -> Found:
    lines = [line.partition(": ") for line in done.stderr.splitlines() if line.startswith(("pdj: ", "warning: "))]
    more = [line for line in done.stderr.splitlines() if not re.match("(pdj|warning|note): ", line)]
    errors = {plain(text) for head, _, text in lines if head == "pdj"} | {plain(line) for line in more}
    assert bool(errors) == bool(done.returncode), done
    return errors, {plain(text) for head, _, text in lines if head == "warning"}


async def raised(start: Callable[[], object]) -> Found:
    def call() -> Found:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                start()
            except pj.PaddleJobError as error:
                return {plain(line) for line in str(error).splitlines()}, set()
        return set(), {plain(str(one.message)) for one in caught if one.category is UserWarning}

    return await asyncio.to_thread(call)


class Entries:
    """Everything that takes a job, by name; none of them starts a process."""

    def __init__(self, called: Pdj, api: ScriptedCluster, state: Path) -> None:
        self._called, self._api, self._store = called, api, JobStore(state)

    async def verb(self, *arguments: str) -> Found:
        return printed(await self._called(*arguments))

    def of_files(self, path: Path) -> dict[str, Callable[[], Awaitable[Found]]]:
        file = str(path)
        return {
            "validate": lambda: self.verb("validate", file),
            "plan": lambda: self.verb("plan", file),
            "plan here": lambda: self.verb("plan", file, "--engine", "local"),
            "run": lambda: self.verb("run", file, "--dry-run"),
            "submit": lambda: self.verb("submit", file, "--dry-run"),
            "pj.run": lambda: raised(lambda: pj.run(pj.load(file))),
            "pj.submit": lambda: raised(lambda: pj.submit(pj.load(file))),
        }

    async def rerun_here(self, made: Object, *others: Object) -> Found:
        folder, lock = self._store.begin(made, RunOptions(objects=others), NOON)
        folder.write_status(Status.model_validate(ENDED_WELL))
        lock.release()
        return await self.verb("rerun", "mnist", "--local")

    async def rerun_on_the_cluster(self, made: Object) -> Found:
        self._api.put("default/paddlejobs/mnist", {**made, "status": ENDED_WELL})
        return await self.verb("rerun", "mnist", "--cluster")


@pytest.fixture
async def entries(called: Pdj, api: ScriptedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entries:
    def release(store: JobStore, held: list[Any]) -> None:
        for _, lock in held:
            lock.release()

    for name in ("start_spawned", "spawn_detached"):
        monkeypatch.setattr(f"paddlejob.local.runner.{name}", release)
    return Entries(called, api, tmp_path / "state")


def write(folder: Path, *objects: Object) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def reads(kind: str, name: str, key: str) -> Object:
    return {"env": [{"name": "A", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key}}}]}


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "../models"}}
FILE = {"name": "v", "secret": {"secretName": "key", "items": [{"key": "a", "path": "b"}]}}
POD = "spec.worker.template.spec"
BAD: dict[str, tuple[list[Object], str]] = {
    "a number in a ConfigMap": (
        [job(), {**RATES, "data": {"lr": 0.1}}],
        'data.lr: values are strings; write "0.1" in quotes (ConfigMap rates)',
    ),
    "a ConfigMap without keys": (
        [job(), {**RATES, "data": ["lr"]}],
        "data of ConfigMap rates is not a mapping; write one `key: value` per line",
    ),
    "a Secret that is not base64": (
        [job(), {**KEY, "data": {"token": "not base64!"}}],
        "data.token is not base64; encode it, or write it as it is under stringData (Secret key)",
    ),
    "a key that the ConfigMap of the file lacks": (
        [job(container=reads("configMap", "rates", "rate")), {**RATES, "data": {"lr": "0.1"}}],
        f"{POD}.containers[0].env[0].valueFrom.configMapKeyRef.key: ConfigMap rates has no key rate; add it, or "
        "correct the key in the template",
    ),
    "a file that the Secret of the file lacks": (
        [job(volumes=[FILE]), {**KEY, "stringData": {"token": "x"}}],
        f"{POD}.volumes[0].secret.items[0].key: Secret key has no key a; add it, or correct the key in the template",
    ),
    "an object twice": (
        [job(), {**RATES, "data": {}}, {**RATES, "data": {}}],
        "metadata.name: ConfigMap rates is defined twice; rename one",
    ),
    "a container name with dots": (
        [job(container={"name": "../x"})],
        f'{POD}.containers[0].name: "../x" is not a valid',
    ),
    "a claim with dots": ([job(volumes=[CLAIM])], f'{POD}.volumes[0].persistentVolumeClaim.claimName: "../models" is'),
    "a host name with a dot": ([job(hostname="x.y")], f'{POD}.hostname: "x.y" is not a valid name'),
    "an unknown volume": (
        [job(container={"volumeMounts": [{"name": "d", "mountPath": "/d"}]})],
        f'{POD}.containers[0].volumeMounts[0].name: no volume is named "d"',
    ),
    "the GPU by its short name": (
        [job(container={"resources": {"limits": {"gpu": 1}}})],
        f"{POD}.containers[0].resources.limits.gpu is not a resource of Kubernetes",
    ),
    "a job whose environment is too large": (
        [{**job(), "spec": document(workers=9000)["spec"]}],
        "spec: PADDLE_TRAINER_ENDPOINTS would exceed the 128 KiB limit of an environment variable",
    ),
}


@pytest.mark.parametrize(("objects", "message"), BAD.values(), ids=BAD)
async def test_every_way_to_a_job_reports_the_same_error_once(
    entries: Entries, objects: list[Object], message: str, tmp_path: Path
):
    found = {name: await look() for name, look in entries.of_files(write(tmp_path, *objects)).items()}
    found["rerun"] = await entries.rerun_here(*objects)
    if len(objects) == 1:
        found["rerun on a cluster"] = await entries.rerun_on_the_cluster(objects[0])
    ((error,), no_warnings) = found["validate"]
    assert error.startswith(message) and no_warnings == set()
    assert found == dict.fromkeys(found, ({error}, set()))


UNREADABLE: dict[str, tuple[str | list[Object], str]] = {
    "not YAML": ("kind: [", "invalid YAML: did not find expected node content"),
    "empty": ("", "is empty; it should contain a PaddleJob"),
    "no job": ([RATES], "contains no PaddleJob, only ConfigMap; check kind and apiVersion"),
    "a job of Kubeflow": (
        [{"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "metadata": {"name": "a"}}],
        "apiVersion: kubeflow.org/v1 is the PaddleJob of Kubeflow; convert it with `pdj convert ",
    ),
    "an unknown field": ([{**job(), "specs": {}}], "specs: unknown field;"),
    "a job without a spec": (
        [{key: value for key, value in job().items() if key != "spec"}],
        "spec is missing; add it",
    ),
    "an object without a name": (
        [job(), {"apiVersion": "v1", "kind": "ConfigMap"}],
        "metadata.name is missing in a ConfigMap; add it",
    ),
    "an object without a version": (
        [job(), {"kind": "ConfigMap", "metadata": {"name": "x"}}],
        "apiVersion is missing in a ConfigMap; add it",
    ),
    "a job twice, once in the default namespace": (
        [{**job(), "metadata": {"name": "mnist"}}, job()],
        "metadata.name: job mnist is defined twice; rename one",
    ),
}


@pytest.mark.parametrize(("content", "message"), UNREADABLE.values(), ids=UNREADABLE)
async def test_a_file_that_holds_no_usable_job_is_the_same_error_everywhere(
    entries: Entries, content: str | list[Object], message: str, tmp_path: Path
):
    path = write(tmp_path, *content) if isinstance(content, list) else tmp_path / "job.yaml"
    if isinstance(content, str):
        path.write_text(content)
    found = {name: await look() for name, look in entries.of_files(path).items()}
    if "twice" in message:
        assert "contains 2 jobs" in found.pop("pj.run")[0].pop() and found.pop("pj.submit")
    ((error,), _) = found["validate"]
    assert message in error
    assert found == dict.fromkeys(found, ({error}, set()))


async def test_every_way_to_a_job_warns_of_the_same_doubts(entries: Entries, tmp_path: Path):
    found = {name: await look() for name, look in entries.of_files(write(tmp_path, doubtful())).items()}
    found["rerun"] = await entries.rerun_here(doubtful())
    found["rerun on a cluster"] = await entries.rerun_on_the_cluster(doubtful())
    _, expected = found["validate"]
    for text in (
        "spec.ps: fleetrun waits forever",
        "echo a b",
        "mpirun starts processes",
        "/out, which is on",
        "“model”",
    ):
        assert [one for one in expected if text in one], text
    for name, (errors, warned) in found.items():
        assert (errors, {one for one in warned if one.startswith("spec.")}) == (set(), expected), name


async def test_what_is_wrong_only_on_a_cluster_is_an_error_there_and_a_warning_where_the_target_is_open(
    entries: Entries, tmp_path: Path
):
    made = job()
    del made["spec"]["worker"]["template"]["spec"]["containers"][0]["image"]
    found = {name: await look() for name, look in entries.of_files(write(tmp_path, made)).items()}
    found["rerun"] = await entries.rerun_here(made)
    found["rerun on a cluster"] = await entries.rerun_on_the_cluster(made)
    missing = (
        f"{POD}.containers[0].image is missing; add the image of the program, since a cluster starts no container "
    )
    taken = {name: [any(one.startswith(missing) for one in kind) for kind in both] for name, both in found.items()}
    error, warning, nothing = [True, False], [False, True], [False, False]
    assert taken == {
        **dict.fromkeys(("submit", "pj.submit", "rerun on a cluster"), error),
        **dict.fromkeys(("validate", "plan"), warning),
        **dict.fromkeys(("run", "plan here", "pj.run", "rerun"), nothing),
    }


async def test_a_job_of_another_namespace_than_the_chosen_one_is_an_error(entries: Entries, tmp_path: Path):
    file = str(write(tmp_path, {**job(), "metadata": {"name": "mnist", "namespace": "own"}}))
    found = [await entries.verb(verb, file, "-n", "team", *more) for verb, *more in (
        ("plan",), ("run", "--dry-run"), ("submit", "--dry-run")
    )]  # fmt: skip
    found += [await raised(lambda start=start: start(pj.load(file), namespace="team")) for start in (pj.run, pj.submit)]
    message = "metadata.namespace: job mnist is in namespace own, not team; change it, or choose namespace own"
    assert found == [({message}, set())] * 5


async def test_the_errors_of_all_files_are_reported_at_once(entries: Entries, tmp_path: Path):
    files = [str(tmp_path / "absent.yaml")]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files.append(str(write(tmp_path / name, job(name, hostname="x.y"), job(f"{name}-more", {"name": "../x"}))))
    for verb in (["validate"], ["plan"], ["run", "--dry-run"], ["submit", "--dry-run"]):
        done = await entries.verb(verb[0], *files, *verb[1:])
        assert len(done[0]) == 3 and any("no such file" in error for error in done[0])


async def test_faults_are_reported_before_what_this_machine_lacks(entries: Entries, tmp_path: Path):
    """What refers to a broken object cannot be checked, and would be reported a second time."""
    made = job(
        container={"command": ["python", "absent.py"], **reads("configMap", "rates", "lr")}, nodeSelector={"z": "a"}
    )
    with pytest.raises(InvalidJob, match=r"data\.lr: values are strings"):
        pj.run(pj.load(write(tmp_path, made, {**RATES, "data": {"lr": 0.1}})))
    with pytest.raises(NotPossible, match="nodeSelector z=a does not match this machine"):
        pj.run(pj.load(write(tmp_path, made, {**RATES, "data": {"lr": "0.1"}})))


async def test_what_may_be_in_the_cluster_or_is_optional_is_not_missed(entries: Entries, tmp_path: Path):
    references = [{"name": "absent", "key": "a"}, {"name": "rates", "key": "a", "optional": True}]
    env = [{"name": f"A{i}", "valueFrom": {"configMapKeyRef": one}} for i, one in enumerate(references)]
    volumes = [{"name": "scratch"}]
    path = write(tmp_path, job(container={"env": env}, volumes=volumes), {**RATES, "data": {"lr": "0.1"}})
    for name in ("validate", "plan", "run", "submit"):
        assert await entries.of_files(path)[name]() == (set(), set())

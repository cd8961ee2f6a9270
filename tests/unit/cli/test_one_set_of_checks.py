"""`pdj validate` and `pdj run` find the same faults in a file, with the same messages, each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.cli.verbs.validate import _check
from paddlejob.client.files import objects_in
from paddlejob.client.given import Given
from paddlejob.client.prepare import prepare
from paddlejob.errors import InvalidJob, NotPossible
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import Store
from tests.support.builders import document

MACHINE = Machine("laptop", cpus=64, memory=1 << 40)
RATES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rates"}}
KEY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}


def job(name: str = "mnist", container: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    made = document(name, workers=1)
    made["spec"]["worker"]["template"]["spec"] |= pod
    made["spec"]["worker"]["template"]["spec"]["containers"][0] |= {"command": ["true"], **(container or {})}
    return made


def write(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def errors_of_run(folder: Path, *files: str) -> list[str]:
    try:
        prepare(Given(list(files), objects_in), RunOptions(), Store(folder / "state"), MACHINE)
    except InvalidJob as error:
        return error.faults
    return []


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "../models"}}
BAD = {
    "a number in a ConfigMap": (
        [job(), {**RATES, "data": {"lr": 0.1}}],
        'data.lr: values are strings; write "0.1" in quotes (ConfigMap rates)',
    ),
    "a ConfigMap without keys": ([job(), {**RATES, "data": ["lr"]}], "data: of ConfigMap rates is not a mapping"),
    "a key with a slash": ([job(), {**RATES, "data": {"a/b": "x"}}], "is not a valid key"),
    "a Secret that is not base64": (
        [job(), {**KEY, "data": {"token": "not base64!"}}],
        "data.token: is not base64; encode it, or write it as it is under stringData (Secret key)",
    ),
    "a key that the ConfigMap of the file lacks": (
        [
            job(container={"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "rates", "key": "rate"}}}]}),
            {**RATES, "data": {"lr": "0.1"}},
        ],
        "env[0].valueFrom.configMapKeyRef.key: ConfigMap rates has no key rate; add it, or correct the key",
    ),
    "a file that the Secret of the file lacks": (
        [
            job(volumes=[{"name": "v", "secret": {"secretName": "key", "items": [{"key": "a", "path": "b"}]}}]),
            {**KEY, "stringData": {"token": "x"}},
        ],
        "volumes[0].secret.items[0].key: Secret key has no key a; add it",
    ),
    "an object without a name": ([job(), {"apiVersion": "v1", "kind": "ConfigMap"}], "metadata.name: is missing"),
    "an object without a kind": ([job(), {"apiVersion": "v1", "data": {}}], "kind: is missing in a document; add it"),
    "a claim with dots": ([job(volumes=[CLAIM])], 'claimName: "../models" is not a valid name'),
    "a container name with dots": ([job(container={"name": "../x"})], 'name: "../x" is not a valid name'),
    "a host name with a dot": ([job(hostname="x.y")], 'hostname: "x.y" is not a valid name'),
    "an unknown volume": ([job(container={"volumeMounts": [{"name": "d", "mountPath": "/d"}]})], "no volume is named"),
    "the GPU by its short name": ([job(container={"resources": {"limits": {"gpu": 1}}})], "nvidia.com/gpu"),
    "a variable without a name": ([job(container={"env": [{"name": "", "value": "x"}]})], "environment variable"),
    "a job twice, once in the default namespace": (
        [job(), {**job(), "metadata": {"name": "mnist", "namespace": "default"}}],
        "two jobs are named mnist; rename one",
    ),
    "a job that is too large": ([{**job(), "spec": document(workers=9000)["spec"]}], "job mnist: "),
}


@pytest.mark.parametrize(("objects", "message"), BAD.values(), ids=BAD)
def test_both_report_the_same_fault_once(objects: list[dict[str, Any]], message: str, tmp_path: Path):
    file = write(tmp_path, *objects)
    report = _check(file)
    (reported,) = report.lines(report.errors)
    assert message in reported
    assert errors_of_run(tmp_path, file) == [reported]


def test_a_key_of_an_object_that_may_be_in_the_cluster_or_is_optional_is_not_an_error(tmp_path: Path):
    references = [{"name": "absent", "key": "a"}, {"name": "rates", "key": "a", "optional": True}]
    env = [{"name": f"A{i}", "valueFrom": {"configMapKeyRef": one}} for i, one in enumerate(references)]
    assert _check(write(tmp_path, job(container={"env": env}), {**RATES, "data": {"lr": "0.1"}})).errors == []


def test_the_errors_of_all_files_are_reported_at_once(tmp_path: Path):
    files = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files.append(write(tmp_path / name, job(name, hostname="x.y"), job(f"{name}-more", {"name": "../x"})))
    assert len(errors_of_run(tmp_path, *files)) == 4


def test_an_object_that_cannot_be_read_is_reported_before_what_this_machine_lacks(tmp_path: Path):
    """What refers to a broken object cannot be checked, and would be reported a second time."""
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "rates", "key": "lr"}}}]
    made = job(container={"command": ["python", "absent.py"], "env": env}, nodeSelector={"zone": "a"})
    (error,) = errors_of_run(tmp_path, write(tmp_path, made, {**RATES, "data": {"lr": 0.1}}))
    assert "data.lr: values are strings" in error
    with pytest.raises(NotPossible, match="nodeSelector zone=a does not match this machine"):
        errors_of_run(tmp_path, write(tmp_path, made, {**RATES, "data": {"lr": "0.1"}}))


def test_a_volume_without_a_type_is_an_empty_directory_as_on_a_cluster(tmp_path: Path):
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    file = write(tmp_path, job(container={"volumeMounts": mounts}, volumes=[{"name": "scratch"}]))
    assert _check(file).errors == []
    assert errors_of_run(tmp_path, file) == []


def test_a_job_without_a_spec_is_one_message_also_with_cpu(tmp_path: Path):
    file = write(tmp_path, {key: value for key, value in job().items() if key != "spec"})
    with pytest.raises(InvalidJob, match="spec: is missing; add it"):
        prepare(Given([file], objects_in), RunOptions(), Store(tmp_path / "state"), MACHINE, cpu=True)

"""The tables of the embedded engine, entry by entry, and where a reader of a log starts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from paddlejob.client.targets.target import LogChoice
from paddlejob.errors import BadInput
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.resources import Machine, parse_quantity
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import _script, on_the_cpu
from paddlejob.local.runtime.container import PodFacts, field_value
from paddlejob.local.runtime.env import LONGEST_TEMPORARY, base_environment, temporary_notes
from paddlejob.local.runtime.images import BUNDLED, EXAMPLES, argv, find_image, spellings
from paddlejob.local.state import log_times
from paddlejob.local.state.log_times import EVERY, LogTimes, offset_at
from paddlejob.local.state.logs import KEPT_ATTEMPTS, TAIL_BYTES, _start_of_tail, follow_logs, log_tail, prune_logs
from paddlejob.local.state.records import PodRecord
from paddlejob.local.state.store import JobFolder, Store
from paddlejob.local.template_checks import NOT_HONOURED_IN_CONTAINER, NOT_HONOURED_IN_POD, not_honoured
from tests.support.builders import NOON, document

DOCUMENTS = "registry.baidubce.com/paddle-operator"
LAUNCH = ["python", "-m", "paddle.distributed.launch"]


@pytest.mark.parametrize(
    ("name", "directory", "workdir", "command"),
    [
        (f"{DOCUMENTS}/demo-wide-and-deep:v1", "wide_and_deep", "/wide_and_deep", ["python3", "train.py"]),
        (f"{DOCUMENTS}/demo-resnet:v1", "collective", "/resnet", [*LAUNCH, "train_fleet.py"]),
        (f"{DOCUMENTS}/demo-resnet:elastic", "collective", "/resnet", [*LAUNCH, "train_fleet_dygraph_ckpt.py"]),
        (f"{DOCUMENTS}/demo-deepfm:v1", "wide_and_deep", "/deepfm", ["python3", "train.py"]),
        ("paddlejob/deepfm:v1", "wide_and_deep", "/deepfm", ["python3", "train.py"]),
        ("paddlejob/mnist:v1", "mnist", "/mnist", ["python3", "train.py"]),
        ("paddlejob/checkpoint:v1", "collective", "/checkpoint", ["python3", "train.py"]),
        ("paddlejob/heter:v1", "heter", "/heter", ["python3", "train.py"]),
        ("paddlepaddle/paddle-tutorial:k8s_data", "k8s_data", "/k8s_data", ["python3", "get_data.py"]),
        ("docker.io/paddlepaddle/paddle-tutorial:k8s_data", "k8s_data", "/k8s_data", ["python3", "get_data.py"]),
    ],
)
def test_each_image_of_the_documents_runs_its_example(name: str, directory: str, workdir: str, command: list[str]):
    image = find_image(name, RunOptions())
    assert (image.directory, image.workdir, image.bundled) == (EXAMPLES / directory, workdir, True)
    assert argv({"name": "paddle", "image": name}, RunOptions()) == command
    assert f"running the bundled example {workdir[1:]}. Run your own code with --image {name}=DIR." in image.note


@pytest.mark.parametrize(
    "name", ["paddlepaddle/paddle-tutorial:k8s_train", "[YOUR_REPO]/paddle:mypaddle", "example/paddle:mypaddle"]
)
def test_the_image_of_a_batch_job_starts_paddle_by_its_script(name: str):
    image = find_image(name, RunOptions())
    assert (image.directory, image.cwd, set(image.files)) == (None, "/", {"/root/start.sh", "/root/start_paddle.py"})
    assert argv({"name": "paddle", "image": name}, RunOptions()) == ["/bin/bash", "-c", "/root/start.sh"]
    assert "running the bundled program /root/start.sh, /root/start_paddle.py." in image.note


def test_an_image_without_a_program_needs_no_note_and_all_are_listed():
    assert find_image(f"{DOCUMENTS}/paddle-ubuntu:2.0.0-18.04", RunOptions()).note == ""
    assert len(BUNDLED) == 13
    assert spellings("host:5000/team/mine:1@sha256:x") == (
        "host:5000/team/mine:1@sha256:x",
        "host:5000/team/mine",
        "mine",
    )
    assert spellings("mine:1") == ("mine:1", "mine", "mine")


@pytest.mark.parametrize("field", NOT_HONOURED_IN_POD)
def test_a_field_of_a_pod_without_effect_is_listed(field: str):
    assert not_honoured({"containers": [{"name": "a"}], field: "x"}, isolated=True) == [field]


@pytest.mark.parametrize("field", NOT_HONOURED_IN_CONTAINER)
def test_a_field_of_a_container_without_effect_is_listed(field: str):
    assert not_honoured({"containers": [{"name": "a"}, {"name": "b", field: "x"}]}, isolated=True) == [field]
    assert not_honoured({"containers": [{"name": "a"}], "initContainers": [{field: "x"}]}, isolated=True) == [field]


def test_the_lists_of_fields_without_effect_are_complete():
    assert set(NOT_HONOURED_IN_POD) == {
        "activeDeadlineSeconds", "dnsConfig", "ephemeralContainers", "hostAliases", "hostIPC", "hostPID", "hostUsers",
        "overhead", "readinessGates", "resourceClaims", "runtimeClassName", "securityContext", "setHostnameAsFQDN",
        "shareProcessNamespace", "subdomain",
    }  # fmt: skip
    assert set(NOT_HONOURED_IN_CONTAINER) == {
        "livenessProbe", "readinessProbe", "securityContext", "startupProbe", "stdin", "tty", "volumeDevices"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"), ("metadata.namespace", "team"), ("metadata.uid", "u"), ("spec.nodeName", "laptop"),
        ("spec.serviceAccountName", "me"), ("status.podIP", "127.64.0.1"), ("status.podIPs", "127.64.0.1"),
        ("status.hostIP", "127.0.0.1"), ("status.hostIPs", "127.0.0.1"),
    ],
)  # fmt: skip
def test_each_field_that_a_variable_can_have(path: str, value: str):
    manifest: dict[str, Any] = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"serviceAccountName": "me"}}
    assert field_value(path, PodFacts(manifest, "127.64.0.1", "u", "laptop")) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), (2, 2), ("1n", 1e-9), ("1u", 1e-6), ("1m", 1e-3), ("1k", 1e3), ("1M", 1e6), ("1G", 1e9), ("1T", 1e12),
        ("1P", 1e15), ("1E", 1e18), ("1Ki", 2**10), ("1Mi", 2**20), ("1Gi", 2**30), ("1Ti", 2**40), ("1Pi", 2**50),
        ("1Ei", 2**60), ("1.5Gi", 1.5 * 2**30),
    ],
)  # fmt: skip
def test_quantities_have_the_units_of_kubernetes(text: str | int, value: float):
    assert parse_quantity(text) == pytest.approx(value)


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_a_directory_whose_sockets_would_be_too_long_is_not_passed_on(name: str, tmp_path: Path):
    fits, long = "/" + "x" * (LONGEST_TEMPORARY - 1), "/" + "x" * LONGEST_TEMPORARY
    short = RunOptions(environment={name: fits})
    assert base_environment(short, Store(tmp_path))[name] == fits and temporary_notes(short) == []
    options = RunOptions(environment={name: long, "OTHER": long})
    assert name not in base_environment(options, Store(tmp_path))
    (note,) = temporary_notes(options)
    assert note.startswith(f"{name} has {len(long)} characters, which is too long") and f"at most {len(fits)} c" in note
    assert LONGEST_TEMPORARY == 75


def test_variables_of_another_job_are_not_passed_on(tmp_path: Path):
    given = {"PADDLE_X": "1", "PADDLEJOB_POD_UID": "u", "RANK": "1", "OWN": "x", "PATH": "/own"}
    passed = base_environment(RunOptions(environment=given, python="/py/bin/python"), Store(tmp_path))
    assert passed.keys() == {"OWN", "PATH", "PYTHONUNBUFFERED"}
    assert passed["PATH"].split(os.pathsep)[1:] == ["/py/bin", "/own"]
    assert passed["PYTHONUNBUFFERED"] == "1"
    assert base_environment(RunOptions(environment={"A": ""}), Store(tmp_path))["PATH"].endswith(os.defpath)


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a/b", "a\0b"])
def test_no_name_leads_out_of_the_store(name: str, tmp_path: Path):
    for key in (("default", name), (name, "mnist")):
        with pytest.raises(BadInput, match="is not a valid n"):
            Store(tmp_path).folder(key)


def test_the_capacity_of_a_machine_is_counted_by_resource():
    machine = Machine("m", 4.0, 1 << 30, (Gpu("u", "0"),))
    amounts = [machine.capacity(name) for name in ("cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "storage")]
    assert amounts == [4.0, float(1 << 30), 1, 0, None]
    assert (machine.labels["kubernetes.io/hostname"], machine.labels["kubernetes.io/os"]) == ("m", "linux")


def test_options_and_records_survive_being_stored():
    secret = {"kind": "Secret", "metadata": {"name": "s"}}
    options = RunOptions(
        "/f", {"i": {"directory": "/d"}}, {"v": "/v", "/host": "/w"}, "/py", True, {"A": "1"}, (secret,)
    )
    assert RunOptions.from_json(options.to_json()) == options
    assert RunOptions.from_json(None) == RunOptions()
    assert options.object("Secret", "s") == secret
    assert options.object("ConfigMap", "s") is options.object("Secret", "t") is None
    assert options.host_paths == {"/host": "/w"}
    record = PodRecord("n", "u", "worker", 1, 2, "Failed", "a", 3, "r", "m", 4, "s", "e", "/log", True, "note")
    assert PodRecord.from_json(record.to_json()) == record
    bare = PodRecord("n", "u", "ps", 0, 1, "Pending")
    assert PodRecord.from_json(bare.to_json()) == bare
    assert (bare.to_json()["started"], bare.to_json()["ended"], "note" in bare.to_json()) == (None, None, False)


def test_without_gpus_each_role_loses_what_asks_for_them():
    made = document(ps=1, workers=1, heter=1)
    for role in ("ps", "worker", "heter"):
        pod = made["spec"][role]["template"]["spec"]
        pod["nodeSelector"], pod["affinity"] = {"gpu": "yes"}, {"nodeAffinity": {"x": 1}, "podAffinity": {"y": 1}}
        pod["containers"][0]["resources"] = {
            "limits": {"nvidia.com/gpu": 2, "cpu": 1},
            "requests": {"nvidia.com/gpu": 2},
        }
    changed, removed = on_the_cpu(made)
    assert removed == [
        f"{role}: {what}" for role in ("ps", "worker", "heter")
        for what in ("nvidia.com/gpu 2", "nvidia.com/gpu 2", "nodeSelector", "nodeAffinity")
    ]  # fmt: skip
    pod = changed["spec"]["heter"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": 1}, "requests": {}}
    assert (pod["affinity"], "nodeSelector" in pod) == ({"podAffinity": {"y": 1}}, False)
    assert "nodeSelector" in made["spec"]["ps"]["template"]["spec"], "the job itself stays"


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["python", "train.py"], "train.py"), (["/usr/bin/python3", "-u", "a.py", "b.py"], "a.py"),
        (["python", "-m", "paddle.distributed.launch", "t.py"], "t.py"), (["python", "-m", "mod", "t.py"], ""),
        (["python", "-c", "x", "t.py"], ""), (["bash", "t.py"], ""), (["python", "train"], ""),
    ],
)  # fmt: skip
def test_the_script_of_a_command_line_is_known_where_python_runs_it(command: list[str], script: str):
    assert _script(command) == script


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    made, lock = Store(tmp_path).begin(document(), RunOptions(), NOON)
    lock.release()
    return made


def write(folder: JobFolder, text: str, attempt: int = 1, replica: str = "worker-0") -> Path:
    log = folder.log(attempt, f"mnist-{replica}")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    return log


def test_sizes_of_logs_are_recorded_once_in_a_while_and_only_when_they_grow(folder: JobFolder):
    times, log = LogTimes(), write(folder, "one\n")
    record = log.with_name("mnist-worker-0.log.times")
    times.record(folder, 1000.0)
    log.write_text("one\ntwo\n")
    times.record(folder, 1000.0 + EVERY - 1)
    assert record.read_text() == "1000 4\n"
    times.record(folder, 1000.0 + EVERY)
    times.record(folder, 1000.0 + 2 * EVERY)
    assert record.read_text() == "1000 4\n1010 8\n"
    times.forget(folder)
    times.record(folder, 1000.0 + 2 * EVERY)
    assert record.read_text() == "1000 4\n1010 8\n1020 8\n"
    other = LogTimes()
    other._sizes[Path("/elsewhere/log")] = 7
    other.forget(folder)
    assert other._sizes == {Path("/elsewhere/log"): 7}


def test_a_reader_of_what_was_written_since_a_moment_starts_at_a_line(folder: JobFolder, monkeypatch: Any):
    log = write(folder, "0123456789\n" * 10 + "unfinished")
    os.utime(log, (2000, 2000))
    log.with_name(f"{log.name}.times").write_text("1000 11\n1010 27\n1020 120\ndamaged\n1030 999\n")
    assert [offset_at(log, moment) for moment in (999, 1000, 1009, 1010, 1020, 1030, 2000)] == [
        0, 11, 11, 22, 110, 110, 110
    ]  # fmt: skip
    assert offset_at(log, 2001) == 120, "nothing was written since"
    assert offset_at(log.with_name("absent"), 5) == 0
    long = write(folder, "a\n" + "x" * 200_000, replica="worker-1")
    assert log_times._start_of_line(long, 150_000) == 2
    assert log_times._start_of_line(long, 0) == 0
    assert log_times._start_of_line(write(folder, "x" * 9, replica="worker-2"), 5) == 0


@pytest.mark.parametrize(
    ("text", "lines", "rest"),
    [
        ("a\nb\nc\n", 1, "c\n"),
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc\n", 9, "a\nb\nc\n"),
        ("a\nb\nc\n", 0, ""),
        ("", 3, ""),
    ],
)
def test_the_tail_of_a_log_begins_at_its_last_lines(folder: JobFolder, text: str, lines: int, rest: str):
    log = write(folder, text)
    assert log.read_text()[_start_of_tail(log, lines) :] == rest


def test_a_tail_is_found_over_blocks(folder: JobFolder):
    log = write(folder, "".join(f"{number:09}\n" for number in range(20_000)))
    for lines in (1, 6553, 6554, 6555, 15_000):
        assert _start_of_tail(log, lines) == 10 * (20_000 - lines)


def test_logs_of_old_attempts_are_removed(folder: JobFolder):
    for attempt in range(1, KEPT_ATTEMPTS + 3):
        write(folder, "x", attempt)
    (folder.path / "logs" / "attempt-x").mkdir()
    prune_logs(folder, KEPT_ATTEMPTS + 2)
    kept = sorted(path.name for path in (folder.path / "logs").iterdir())
    assert kept == sorted(["attempt-x", *(f"attempt-{number}" for number in range(3, KEPT_ATTEMPTS + 3))])


def test_the_end_of_a_log_begins_with_a_whole_line_if_it_is_cut(folder: JobFolder):
    assert log_tail(write(folder, "a\nb\n")) == "a\nb"
    exact = "x" * (TAIL_BYTES - 2) + "\ny"
    assert log_tail(write(folder, exact)) == exact
    assert log_tail(write(folder, "cut" + exact)) == "y"
    assert log_tail(write(folder, "z" * (TAIL_BYTES + 5))) == "z" * TAIL_BYTES
    assert log_tail(folder.path / "absent") == ""


def test_the_last_matches_of_none_are_none(folder: JobFolder):
    write(folder, "loss 1\nx\nloss 2\n")

    def read(tail: int) -> bytes:
        return b"".join(follow_logs(folder, LogChoice(tail=tail, pattern=re.compile(b"loss"))))

    assert (read(0), read(1), read(5)) == (b"", b"loss 2\n", b"loss 1\nloss 2\n")

"""Programs as jobs, and what the command line changes in a job."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.devices import gpus as of_gpus
from paddlejob.api.program import (
    Overrides,
    job_name,
    job_of_program,
    overridden,
    python_file,
    python_module,
    shell_command,
)
from paddlejob.api.types import CleanPodPolicy, Mode
from paddlejob.api.validate import parse
from paddlejob.local.runtime.container import expand

IMAGE = "paddle:1"


def container(document: dict[str, Any], role: str = "worker") -> dict[str, Any]:
    found: dict[str, Any] = document["spec"][role]["template"]["spec"]["containers"][0]
    return found


def test_a_program_becomes_a_valid_collective_job():
    document = job_of_program(python_file("my/Train_1.py", ("--lr", "1")), Overrides(workers=2, image=IMAGE))
    job = parse(document, "test")
    assert (job.name, job.mode, job.spec.pods_wanted) == ("train-1", Mode.COLLECTIVE, 2)
    assert container(document)["command"] == ["python", "my/Train_1.py", "--lr", "1"]


@pytest.mark.parametrize(
    "text", ["pa$$word", "run.$$", "$(PADDLE_TRAINER_ID)", "$$(A)", "$$$", "$", "$HOME $(", "${A}$"]
)
def test_what_the_user_wrote_on_a_command_line_reaches_the_program_unchanged(text: str):
    """Kubernetes' expansion is for job files, whose own arguments stay as they are."""
    variables = {"PADDLE_TRAINER_ID": "0", "A": "1"}
    made = container(job_of_program(shell_command(("bash", "-c", text)), Overrides(environment={"PW": text})))
    assert [expand(one, variables) for one in (made["command"][2], made["env"][0]["value"])] == [text, text]
    file = {"name": "train", "args": ["$(A)"]}
    document = {"spec": {"worker": {"template": {"spec": {"containers": [file]}}}}}
    changed = overridden(document, Overrides(environment={"PW": text}))
    assert container(changed)["args"] == ["$(A)"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "tool", "--out", "result.py"), "tool"),
        (("python3", "-u", "-X", "dev", "pretrain.py", "eval.py"), "pretrain"),
        (("python", "-m", "paddle.distributed.launch", "--log_dir", "logs", "train.py", "x.py"), "train"),
        (("env", "A=1", "bash", "run.sh"), "run"),
        (("python", "-m", "mine"), "python"),
        (("python", "-c", "import train"), "python"),
        (("make", "train"), "make"),
    ],
)
def test_the_job_of_a_command_is_named_after_the_script_that_it_runs(command: tuple[str, ...], name: str):
    assert job_of_program(shell_command(command), Overrides())["metadata"] == {"name": name}


def test_programs_whose_names_no_job_can_have_get_names_of_their_own_and_keep_theirs_beside():
    titles = ["训练", "测试", "训练bert", "测试bert", "Ünï"]
    documents = [job_of_program(python_file(f"{title}.py"), Overrides(image=IMAGE)) for title in titles]
    jobs = [parse(document, "test") for document in documents]
    assert len({one.name for one in jobs}) == len(titles)
    assert [one.name.rpartition("-")[0] for one in jobs] == ["job", "job", "bert", "bert", "n"]
    assert [one.metadata.annotations for one in jobs] == [{contract.ANNOTATION_PROGRAM: title} for title in titles]
    assert job_name("caf\u00e9") == job_name("cafe\u0301"), "however a file system writes it"
    assert job_of_program(python_file("训练.py"), Overrides("mine"))["metadata"] == {"name": "mine"}


def test_servers_make_it_a_parameter_server_job_whose_roles_run_the_same_program():
    document = job_of_program(python_module("pkg.train"), Overrides(servers=2, image=IMAGE))
    assert parse(document, "test").mode is Mode.PS
    assert container(document, "ps")["command"] == container(document)["command"] == ["python", "-m", "pkg.train"]


def test_logs_outlast_a_completed_job_whose_pods_end_by_themselves():
    """Servers never end by themselves, so theirs are deleted as in any job."""
    policies = [
        parse(job_of_program(python_file("train.py"), Overrides(servers=servers, image=IMAGE)), "test").spec.clean
        for servers in (0, 1)
    ]
    assert policies == [CleanPodPolicy.NEVER, CleanPodPolicy.ON_COMPLETION]


@pytest.mark.parametrize(
    ("gpus", "command"),
    [
        (1, ["python", "train.py"]),
        (8, ["python", "-m", "paddle.distributed.launch", "train.py"]),
    ],
)
def test_several_gpus_of_a_worker_need_the_launcher(gpus: int, command: list[str]):
    document = job_of_program(python_file("train.py"), Overrides(devices=of_gpus(gpus), image=IMAGE))
    assert container(document)["command"] == command
    assert container(document)["resources"] == {"limits": {"nvidia.com/gpu": gpus}}


@pytest.mark.parametrize(
    ("command", "launched"),
    [
        ("python -u train.py --lr 1", "train.py --lr 1"),
        ("python -m pkg.train --lr 1", "python -m pkg.train --lr 1"),
        ("python -u -m pkg.train", "python -u -m pkg.train"),
        ("python -c pass", "python -c pass"),
        ("python -u", ""),
    ],
)
def test_the_launcher_gets_a_file_or_a_whole_command_because_it_has_no_option_for_modules(command: str, launched: str):
    made = job_of_program(shell_command(tuple(command.split())), Overrides(devices=of_gpus(2)))
    assert container(made)["command"] == ["python", "-m", "paddle.distributed.launch", *launched.split()]


def test_a_program_with_servers_is_not_launched_whatever_devices_its_workers_have():
    made = job_of_program(python_file("train.py"), Overrides(servers=1, devices=of_gpus(2), image=IMAGE))
    assert container(made, "ps")["command"] == container(made)["command"] == ["python", "train.py"]


def test_a_command_that_uses_the_launcher_stays_as_it_is():
    for command in (("python", "-m", "paddle.distributed.launch", "train.py"), ("bash", "train.sh")):
        made = job_of_program(shell_command(command), Overrides(devices=of_gpus(2)))
        assert container(made)["command"] == list(command)


def test_a_shell_script_runs_with_bash_and_a_command_is_named_after_its_script():
    assert python_file("run.sh").command == ("bash", "run.sh")
    assert shell_command(("sh", "-c", "true")).title == "sh"
    assert shell_command(("env", "A=1", "tools/fit.py")).title == "fit"
    assert shell_command(("/bin/echo", "x")).title == "echo"
    assert python_file("src/my_train.v2.py").title == "my_train.v2"


@pytest.mark.parametrize(
    ("title", "name"), [("Train_v2", "train-v2"), ("__", "job"), ("a" * 50, "a" * 40), ("-a-", "a")]
)
def test_names_are_valid(title: str, name: str):
    assert job_name(title) == name


def test_options_change_a_job_of_a_file_and_leave_the_rest():
    given = job_of_program(python_file("train.py"), Overrides(workers=2, servers=1, image=IMAGE))
    container(given)["env"] = [{"name": "KEPT", "value": "1"}, {"name": "LR", "value": "1"}]
    wanted = Overrides(
        name="other", workers=4, servers=3, image="new:2", environment={"LR": "2"}, queue="q", claims={"data": "/d"}
    )
    changed = overridden(given, wanted)
    job = parse(changed, "test")
    assert (job.name, job.spec.worker and job.spec.worker.replicas, job.spec.ps and job.spec.ps.replicas) == (
        "other", 4, 3,
    )  # fmt: skip
    assert container(changed)["env"] == [{"name": "KEPT", "value": "1"}, {"name": "LR", "value": "2"}]
    assert container(changed, "ps")["image"] == container(changed)["image"] == "new:2"
    assert container(changed)["volumeMounts"] == [{"name": "data", "mountPath": "/d"}]
    assert changed["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}
    assert container(given)["image"] == IMAGE, "the job that was given is not touched"
    assert "resources" not in container(overridden(given, Overrides(devices=of_gpus(1))), "ps")
    alone = job_of_program(python_file("train.py"), Overrides(image=IMAGE))
    assert "ps" not in overridden(alone, Overrides(servers=2))["spec"]
    assert overridden({}, Overrides()) == {"metadata": {}, "spec": {}}


def test_the_queue_of_a_job_that_only_names_a_topology_is_kueues():
    made, policy = job_of_program(python_file("train.py"), Overrides(image=IMAGE)), {"topology": {"required": "zone"}}
    made["spec"]["schedulingPolicy"] = policy
    made["metadata"]["labels"] = {"a": "b"}
    changed = overridden(made, Overrides(queue="q"))
    assert changed["metadata"]["labels"] == {"a": "b", "kueue.x-k8s.io/queue-name": "q"}
    assert changed["spec"]["schedulingPolicy"] == policy


@pytest.mark.parametrize("given", [{"schedulingPolicy": {"minAvailable": 2}}, {"schedulerName": "volcano"}])
def test_a_job_that_asks_for_volcano_waits_in_a_queue_of_volcano(given: dict[str, Any]):
    made = job_of_program(python_file("train.py"), Overrides(image=IMAGE))
    if "schedulerName" in given:
        made["spec"]["worker"]["template"]["spec"] |= given
    else:
        made["spec"] |= given
    changed = overridden(made, Overrides(queue="q"))
    assert changed["spec"]["schedulingPolicy"]["queue"] == "q"
    assert "labels" not in changed["metadata"]


def test_no_gpus_removes_those_of_the_file_and_a_mounted_claim_is_not_mounted_twice():
    given = job_of_program(python_file("train.py"), Overrides(devices=of_gpus(2), image=IMAGE, claims={"data": "/a"}))
    changed = overridden(given, Overrides(devices=of_gpus(0), claims={"data": "/b"}))
    assert container(changed)["resources"] == {"limits": {}}
    assert container(changed)["volumeMounts"] == [{"name": "data", "mountPath": "/b"}], "where the option says"
    same = overridden(given, Overrides(claims={"data": ""}))
    assert container(same)["volumeMounts"] == [{"name": "data", "mountPath": "/a"}], "the option names no path"


def test_a_claim_that_the_training_container_does_not_mount_is_mounted():
    given = job_of_program(python_file("train.py"), Overrides(image=IMAGE))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    given["spec"]["worker"]["template"]["spec"]["volumes"] = [volume]
    changed = overridden(given, Overrides(claims={"data": ""}))
    assert changed["spec"]["worker"]["template"]["spec"]["volumes"] == [volume]
    assert container(changed)["volumeMounts"] == [{"name": "v", "mountPath": "/mnt/data"}]

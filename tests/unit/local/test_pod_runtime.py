"""What a container is started with: its command, environment, working directory, mounts and log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.pod import new_pod
from paddlejob.local.runtime import pod_runtime
from paddlejob.plan import PodPhase
from tests.support.builders import NOON
from tests.support.scripted_supervisor import OnePod, container

Make = Callable[..., OnePod]
Spec = dict[str, Any]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[OnePod] = []

    def build(**more: Any) -> OnePod:
        made.append(OnePod(tmp_path / "state", **more))
        return made[-1]

    yield build
    for one in made:
        one.close()


def started(stage: OnePod, name: str = "paddle", **environment: str) -> Spec:
    stage.bind()
    stage.publish(**environment)
    assert stage.pod.seen.phase is PodPhase.WAITING, stage.pod.seen.message
    return stage.supervisor.started[name]


def with_service(stage: OnePod) -> None:
    """Give the job the Service that makes the host names of its pods resolvable."""
    stage.local.services.add("mnist-peers")
    stage.pod.change(dns_name="mnist-worker-0.mnist-peers")


def targets(spec: Spec) -> dict[str, str]:
    return {mount["target"]: mount["source"] for mount in spec["mounts"]}


def test_the_environment_of_the_attempt_the_template_and_the_pod_itself(make: Make):
    stage = make(containers=[container(env=[{"name": "MINE", "value": "$(TOGETHER)!"}])])
    spec = started(stage, TOGETHER="yes")
    assert (spec["env"]["TOGETHER"], spec["env"]["MINE"]) == ("yes", "yes!")
    assert spec["env"]["HOSTNAME"] == "mnist-worker-0"
    assert spec["env"]["PADDLEJOB_POD_UID"] == "uid-1"
    assert spec["hostname"] == ""


def test_the_logs_of_the_launchers_processes_are_kept_beside_the_log_of_their_pod(make: Make):
    spec = started(make())
    assert f"{spec['env']['PADDLE_LOG_DIR']}.log" == spec["log"]


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-m", "paddle.distributed.launch", "--log_dir", "out", "train.py"],
        ["sh", "-c", "fleetrun --log_dir=out train.py"],
    ],
)
def test_an_explicit_log_dir_of_the_launcher_is_left_alone(make: Make, command: list[str]):
    assert "PADDLE_LOG_DIR" not in started(make(containers=[container(command=command)]))["env"]


def test_the_command_may_refer_to_variables(make: Make):
    stage = make(containers=[container(command=["train", "$(SIZE)", "$(UNKNOWN)"])])
    assert started(stage, SIZE="2")["argv"] == ["train", "2", "$(UNKNOWN)"]


def test_logs_are_named_after_the_pod_and_those_of_other_containers_also_after_them(make: Make):
    stage = make(containers=[container("logger"), container()])
    started(stage)
    names = {name: Path(spec["log"]).name for name, spec in stage.supervisor.started.items()}
    assert names == {"paddle": "mnist-worker-0.log", "logger": "mnist-worker-0.logger.log"}
    assert Path(stage.supervisor.started["paddle"]["log"]).parent.is_dir()


def test_the_number_of_threads_follows_the_cpu_limit_unless_the_template_sets_it(
    make: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def threads(cpu: str, *env: dict[str, str]) -> str | None:
        made = container(env=list(env), resources={"limits": {"cpu": cpu}} if cpu else {})
        stage = make(containers=[made])
        found: str | None = started(stage)["env"].get("OMP_NUM_THREADS")
        stage.close()
        return found

    assert [threads("2500m"), threads("100m"), threads("")] == ["2", "1", None]
    assert threads("4", {"name": "OMP_NUM_THREADS", "value": "9"}) == "9"


def test_only_a_machine_with_gpus_says_which_of_them_a_pod_may_use(make: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    stage = make()
    assert "CUDA_VISIBLE_DEVICES" not in started(stage)["env"]
    stage.close()
    stage = make()
    stage.pod.device_variables = {"CUDA_VISIBLE_DEVICES": "3"}
    assert started(stage)["env"]["CUDA_VISIBLE_DEVICES"] == "3"


def test_a_host_name_of_the_template_is_that_of_the_container_and_resolves(make: Make):
    spec = started(make(hostname="trainer"))
    assert (spec["hostname"], spec["env"]["HOSTNAME"]) == ("trainer", "trainer")
    hosts = Path(targets(spec)["/etc/hosts"]).read_text()
    assert "127.64.0.1 trainer trainer" in hosts.splitlines()
    assert hosts.endswith("\n"), "some programs skip a last line without an end"
    assert hosts.startswith(pod_runtime.HOSTS.read_text()), "the names of this machine stay"


def test_pods_of_a_job_with_services_resolve_each_other_by_name(make: Make):
    stage = make()
    with_service(stage)
    hosts = Path(targets(started(stage))["/etc/hosts"]).read_text().splitlines()
    assert "127.64.0.1 mnist-worker-0.mnist-peers.default.svc mnist-worker-0" in hosts
    assert any("localhost" in line for line in hosts), "the entries of this machine are kept"


def test_without_services_or_a_host_name_the_hosts_file_of_the_machine_is_used(make: Make):
    assert "/etc/hosts" not in targets(started(make()))


def test_where_nothing_can_be_mounted_names_become_addresses(make: Make):
    command = ["train", "--master=mnist-worker-0.mnist-peers.default.svc:6379"]
    stage = make(isolated=False, containers=[container(command=command)], hostname="trainer")
    with_service(stage)
    spec = started(stage, MASTER="mnist-worker-0.mnist-peers.default.svc")
    assert spec["argv"][1] == "--master=127.64.0.1:6379"
    assert spec["env"]["MASTER"] == "127.64.0.1"
    assert spec["mounts"] == []


def test_where_mounts_are_possible_names_stay_names(make: Make):
    stage = make()
    with_service(stage)
    name = "mnist-worker-0.mnist-peers.default.svc"
    assert started(stage, MASTER=name)["env"]["MASTER"] == name


def test_a_longer_name_is_not_taken_for_a_shorter_one_at_its_beginning(make: Make):
    """A Service whose name contains that of a pod of another one."""
    stage = make(isolated=False)
    with_service(stage)
    name = "mnist-worker-0.mnist-peers.default.svc"
    other = new_pod("uid-2", stage.pod.manifest, stage.pod.own, NOON)
    other.change(dns_name=f"{name}.x", address="127.64.0.2")
    stage.local.pods["other"] = other
    found = started(stage, MASTER=f"{name}.x.default.svc {name}")["env"]["MASTER"]
    assert found == "127.64.0.2 127.64.0.1"


def test_the_termination_message_has_a_file_of_its_own(make: Make):
    stage = make(containers=[container(terminationMessagePath="/dev/termination-log")])
    file = Path(targets(started(stage))["/dev/termination-log"])
    assert file.is_file()
    assert pod_runtime.termination_message(stage.pod, container()) == ""
    file.write_bytes(b"\xff" + b"x" * 9000)
    assert len(pod_runtime.termination_message(stage.pod, container())) == 4096


def test_a_container_without_a_termination_message_has_an_empty_one(make: Make):
    stage = make()
    started(stage)
    assert pod_runtime.termination_message(stage.pod, container()) == ""


def test_mount_points_are_absolute_and_none_covers_the_whole_file_system(make: Make):
    mounted = container(volumeMounts=[{"name": "scratch", "mountPath": "data//set/"}])
    volumes = [{"name": "scratch", "emptyDir": {}}]
    stage = make(containers=[mounted], volumes=volumes)
    assert "/data/set" in targets(started(stage))
    stage.close()
    stage = make(containers=[container(terminationMessagePath="//")])
    stage.bind()
    stage.publish()
    assert stage.pod.seen.reason == "InvalidTemplate"
    assert "mounts something at /; choose a path below it" in stage.pod.seen.message


def test_volumes_are_created_before_anything_starts(make: Make):
    mounted = container(volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}])
    stage = make(containers=[mounted], volumes=[{"name": "scratch", "emptyDir": {}}])
    stage.bind()
    source = stage.pod.own / "volumes" / "scratch"
    assert source.is_dir()
    stage.publish()
    assert targets(stage.supervisor.started["paddle"])["/scratch"] == str(source)


def test_objects_of_the_job_file_are_read_by_its_containers(make: Make):
    options = RunOptions(
        objects=(
            {"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"RATE": "0.1"}},
            {"kind": "Secret", "metadata": {"name": "token"}, "stringData": {"KEY": "abc"}},
        )
    )
    sources = [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "token"}}]
    spec = started(make(options=options, containers=[container(envFrom=sources)]))
    assert (spec["env"]["RATE"], spec["env"]["KEY"]) == ("0.1", "abc")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"command": ["train", "a\0b"]}, "the command contains a character"),
        ({"workingDir": "/data\0"}, "workingDir contains a character"),
        ({"env": [{"name": "A", "value": "\0"}]}, "A contains a character"),
        ({"env": [{"name": "A=B", "value": "1"}]}, "'A=B' is not the name of an environment variable"),
        ({"env": [{"name": "", "value": "1"}]}, "'' is not the name of an environment variable"),
        ({"env": [{"name": "A\0", "value": "1"}]}, "'A\\x00' is not the name of an environment variable"),
    ],
)
def test_text_that_no_program_can_receive_fails_the_pod_with_a_message(make: Make, fields: Spec, message: str):
    stage = make(containers=[container(**fields)])
    stage.bind()
    stage.publish()
    assert (stage.pod.seen.phase, stage.pod.seen.reason) == (PodPhase.FAILED, "InvalidTemplate")
    assert message in stage.pod.seen.message


def test_an_unknown_image_runs_the_code_beside_the_job_file(make: Make, tmp_path: Path):
    spec = started(make(options=RunOptions(folder=str(tmp_path))))
    assert spec["cwd"] == str(tmp_path)


def test_the_working_directory_of_a_container_takes_precedence(make: Make, tmp_path: Path):
    spec = started(make(containers=[container(workingDir=str(tmp_path))]))
    assert spec["cwd"] == str(tmp_path)


def test_the_directory_of_an_image_is_mounted_at_its_path_in_the_image(make: Make, tmp_path: Path):
    options = RunOptions(images={"mine": {"directory": str(tmp_path), "workdir": "/path-of-the-image"}})
    spec = started(make(options=options))
    assert spec["cwd"] == "/path-of-the-image"
    assert targets(spec)["/path-of-the-image"] == str(tmp_path)


def test_a_path_of_the_image_that_is_here_or_that_a_volume_covers_is_not_mounted_over(make: Make, tmp_path: Path):
    options = RunOptions(images={"mine": {"directory": str(tmp_path), "workdir": "/usr"}})
    stage = make(options=options)
    spec = started(stage)
    assert (spec["cwd"], spec["mounts"]) == (str(tmp_path), [])
    stage.close()
    options = RunOptions(images={"mine": {"directory": str(tmp_path), "workdir": "/image-of-a-test/code"}})
    mounted = container(volumeMounts=[{"name": "scratch", "mountPath": "/image-of-a-test"}])
    spec = started(make(options=options, containers=[mounted], volumes=[{"name": "scratch", "emptyDir": {}}]))
    assert (spec["cwd"], list(targets(spec))) == (str(tmp_path), ["/image-of-a-test"])


def test_without_mounts_an_image_runs_in_its_directory(make: Make, tmp_path: Path):
    options = RunOptions(images={"mine": {"directory": str(tmp_path), "workdir": "/path-of-the-image"}})
    assert started(make(isolated=False, options=options))["cwd"] == str(tmp_path)


def test_a_bundled_example_is_copied_for_each_pod(make: Make):
    stage = make(containers=[container(image="paddlejob/mnist:v1", command=[])])
    spec = started(stage)
    assert spec["argv"] == ["python3", "train.py"]
    assert targets(spec)["/mnist"] == str(stage.pod.own / "image")
    assert (stage.pod.own / "image" / "train.py").is_file()


def test_an_image_without_a_program_starts_in_a_directory_of_the_pod(make: Make):
    image = "registry.baidubce.com/paddle-operator/paddle-ubuntu:2.0.0-18.04"
    stage = make(containers=[container(image=image)])
    spec = started(stage)
    assert spec["cwd"] == str(stage.pod.own / "image")
    assert Path(spec["cwd"]).is_dir()


def test_single_files_of_an_image_are_mounted_at_their_paths(make: Make):
    stage = make(containers=[container(image="example/paddle:mypaddle", command=[])])
    spec = started(stage)
    assert spec["cwd"] == "/"
    assert sorted(targets(spec)) == ["/root/start.sh", "/root/start_paddle.py"]
    assert all(mount["image"] for mount in spec["mounts"])
    stage.close()
    stage = make(containers=[container(image="example/paddle:mypaddle", command=[], workingDir="/tmp")])
    assert started(stage)["cwd"] == "/tmp"

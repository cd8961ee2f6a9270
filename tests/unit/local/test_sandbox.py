"""The supervisor and the containers it starts: their files, their processes, and how they end."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.runtime.processes import Processes, ProcessSpec
from paddlejob.local.sandbox.mounts import AT_A_FILE
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.sandbox.supervisor import SWITCH, isolation, probe
from tests.support.processes import is_alive, supervisor
from tests.support.tiny_jobs import until

Report = dict[str, Any]
TRUE, LOADER = Path("/bin/true").read_bytes(), b"/lib64/ld-linux-x86-64.so.2"


class Box:
    """A supervisor, and what it reported about each container."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.reports: dict[str, list[Report]] = {}
        self.lost = asyncio.Event()
        self.processes = Processes(self.lost.set, lambda error: None)

    def on_report(self, name: str, report: Report) -> None:
        self.reports.setdefault(name, []).append(report)

    def start(self, script: str | list[str], name: str = "a", **more: Any) -> None:
        argv = ["bash", "-c", script] if isinstance(script, str) else script
        stage = self.root / "stage"
        stage.mkdir(exist_ok=True)
        fields = {"env": {"PATH": os.environ["PATH"]}, "cwd": str(self.root), "mounts": [], **more}
        self.processes.start(ProcessSpec(id=name, argv=argv, log=str(self.log(name)), stage=str(stage), **fields))

    def log(self, name: str) -> Path:
        return self.root / f"{name}.log"

    async def output(self, script: str | list[str], name: str = "a", **more: Any) -> list[str]:
        """Run a program to its end; every test sees that it succeeded."""
        self.start(script, name, **more)
        await self.gone(name)
        lines = self.log(name).read_text().splitlines()
        assert self.value(name, "ended") == 0, (self.reports[name], lines)
        return lines

    async def gone(self, name: str = "a") -> None:
        await until(lambda: {"gone": True} in self.reports.get(name, []))

    async def started(self, name: str = "a") -> int:
        await until(lambda: self.value(name, "started"))
        pid = self.value(name, "started")
        assert isinstance(pid, int)
        return pid

    async def grown(self, count: int, name: str = "a") -> tuple[int, list[int]]:
        """The first process, and those that it started, once there are as many."""
        pid = await self.started(name)
        await until(lambda: len(descendants(pid)) >= count)
        return pid, descendants(pid)

    async def prints(self, text: str, name: str = "a") -> None:
        await until(lambda: self.log(name).exists() and text in self.log(name).read_text())

    def value(self, name: str, key: str) -> Any:
        return next((one[key] for one in self.reports.get(name, []) if key in one), None)


async def opened(root: Path) -> AsyncIterator[Box]:
    box = Box(root)
    await box.processes.open(box.on_report)
    yield box
    await box.processes.close()
    assert not box.lost.is_set()


@pytest.fixture(params=["namespaces", "processes"])
async def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> AsyncIterator[Box]:
    """With namespaces and without; both must treat processes alike."""
    if request.param == "processes":
        monkeypatch.setenv(SWITCH, "0")
    async for made in opened(tmp_path):
        yield made


@pytest.fixture
async def isolated(tmp_path: Path) -> AsyncIterator[Box]:
    async for made in opened(tmp_path):
        if not made.processes.isolated:
            pytest.skip(f"needs namespaces: {made.processes.why_not_isolated}")
        yield made


async def test_a_switch_turns_namespaces_off_and_the_engine_learns_why(box: Box):
    if os.environ.get(SWITCH) == "0":
        assert (box.processes.isolated, box.processes.why_not_isolated) == (False, f"{SWITCH} is 0")
    else:
        assert box.processes.isolated is (box.processes.why_not_isolated == "")


def test_where_unshare_can_create_namespaces_the_supervisor_can_too():
    """Without this, a wrong flag would turn namespaces off, and the tests that need them would be skipped."""
    program = shutil.which("unshare")
    if program is None or os.geteuid() != 0:
        pytest.skip("needs util-linux and root")
    command = [program, "--pid", "--mount", "--fork", "--mount-proc", "true"]
    available = subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert probe()[0] is available


def test_whether_namespaces_are_available_is_tried_without_changing_this_process(monkeypatch: pytest.MonkeyPatch):
    before = Path("/proc/self/ns/mnt").readlink()
    isolated, why_not = probe()
    assert isolated is (why_not == "")
    assert Path("/proc/self/ns/mnt").readlink() == before
    monkeypatch.setenv(SWITCH, "0")
    assert probe() == isolation() == (False, f"{SWITCH} is 0")


async def test_a_program_has_its_arguments_environment_directory_and_log(box: Box):
    box.log("a").write_text("before\n")
    (box.root / "code").mkdir()
    more = {"env": {"PATH": os.environ["PATH"], "ONE": "1"}, "cwd": str(box.root / "code")}
    script = "echo $0 $ONE; pwd; echo error >&2; cat; readlink /proc/$$/fd/*; ps -o sid=,pgid= $$"
    lines = await box.output(["bash", "-c", script, "name"], **more)
    log = str(box.log("a"))
    assert lines[:-1] == ["before", "name 1", str(box.root / "code"), "error", "/dev/null", log, log]
    assert len(set(lines[-1].split())) == 1, "it leads a session of its own"
    assert [next(iter(one)) for one in box.reports["a"]] == ["started", "ended", "gone"]


@pytest.mark.parametrize("code", [0, 1, 127, 255])
async def test_the_exit_status_of_the_program_is_reported(box: Box, code: int):
    box.start(f"exit {code}")
    await box.gone()
    assert {"ended": code, "oom": False} in box.reports["a"]


async def test_a_program_that_a_signal_ended_has_the_status_of_a_shell(box: Box):
    box.start("kill -INT $$")
    await box.gone()
    assert {"ended": 130, "oom": False} in box.reports["a"]


async def test_the_process_that_is_reported_is_the_one_that_the_engine_sees(box: Box):
    box.start("echo up; sleep 300")
    await box.prints("up")
    pid = await box.started()
    assert pid in descendants(supervisor())
    assert len(descendants(pid)) in (1, 2), "the program is below it"


def script(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o755)
    return path


async def test_a_program_that_cannot_be_executed_says_what_is_missing(box: Box):
    script(box.root / "train", "#! /no/such/python -u\n")
    script(box.root / "mine", "#!/bin/sh\necho found $1\n")
    path = {"env": {"PATH": f"/usr/bin:{box.root}"}}
    needs = "needs /no/such/python, which does not exist"
    for number, (command, fields, message) in enumerate(
        (
            ("no-such-command", {}, "no-such-command: no such command"),
            ("mine", {"env": {"PATH": "/usr/bin"}}, "mine: no such command"),
            ("/etc/passwd", {}, "/etc/passwd: Permission denied"),
            ("true", {"cwd": "/no/such"}, "the working directory /no/such: No such file or directory"),
            (f"{box.root}/train", {}, f"{box.root}/train: {needs}"),
            ("train", path, f"train: {needs}"),
        )
    ):
        box.start([command], f"c{number}", **fields)
        await box.gone(f"c{number}")
        assert box.reports[f"c{number}"] == [{"failed": message}, {"gone": True}]
    assert await box.output(["mine", "it"], **path) == ["found it"]


async def test_a_program_of_another_system_says_that_its_loader_is_missing(box: Box):
    if LOADER not in TRUE:
        pytest.skip("needs a program with the loader of x86-64")
    program = script(box.root / "foreign", TRUE.replace(LOADER, LOADER.replace(b"linux", b"other")))
    box.start([str(program)])
    await box.gone()
    assert box.value("a", "failed") == f"{program}: needs the loader of another system, which does not exist"


async def test_a_request_may_be_longer_than_what_is_read_at_once(box: Box):
    environment = {"PATH": os.environ["PATH"]} | {f"LONG_{number}": "x" * 100_000 for number in range(12)}
    assert await box.output("echo ${#LONG_0} ${#LONG_11}", env=environment) == ["100000 100000"]


async def test_a_log_that_cannot_be_written_is_named(box: Box):
    box.log("a").mkdir()
    box.start("true")
    await box.gone()
    assert box.value("a", "failed") == f"{box.log('a')}: Is a directory"


async def test_only_the_program_itself_is_asked_to_end(box: Box):
    script = (
        "bash -c 'trap \"echo child asked\" TERM; echo ready; while :; do sleep 0.05; done' & "
        "trap 'sleep 0.3; echo saved; exit 7' TERM; while :; do sleep 0.05; done"
    )
    box.start(script)
    await box.prints("ready")
    box.processes.terminate("a")
    await box.gone()
    assert box.log("a").read_text().split("\n") == ["ready", "saved", ""]
    assert box.value("a", "ended") == 7


async def test_a_program_that_is_killed_takes_everything_that_it_started_along(box: Box):
    box.start("trap '' TERM; setsid sleep 300 & sleep 300 & echo up; wait")
    await box.prints("up")
    pid, below = await box.grown(3)
    box.processes.terminate("a")
    await asyncio.sleep(0.1)
    assert is_alive(pid)
    box.processes.kill("a")
    await box.gone()
    assert not any(is_alive(one) for one in (pid, *below))


async def test_what_a_program_leaves_running_ends_with_it(box: Box):
    box.start("setsid sleep 300 & bash -c 'sleep 300 & sleep 0.2' & echo up; sleep 0.5")
    await box.prints("up")
    _, below = await box.grown(3)
    await box.gone()
    await until(lambda: not any(is_alive(one) for one in below))
    assert box.value("a", "ended") == 0


async def test_containers_run_side_by_side_and_end_alone(box: Box):
    box.start("sleep 300", "a")
    box.start("sleep 300", "b")
    first, second = await box.started("a"), await box.started("b")
    box.processes.terminate("a")
    await box.gone("a")
    assert not is_alive(first)
    assert is_alive(second)
    assert box.value("b", "ended") is None
    for request in (box.processes.kill, box.processes.terminate):
        request("unknown")
    assert await box.output("echo third", "c") == ["third"]
    assert is_alive(second)


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def test_a_container_for_which_the_system_has_no_more_resources_fails_alone(box: Box):
    box.start("sleep 300", "other")
    other = await box.started("other")
    reaper = descendants(supervisor())[0] if box.processes.isolated else supervisor()
    before = resource.prlimit(reaper, resource.RLIMIT_NOFILE)
    resource.prlimit(reaper, resource.RLIMIT_NOFILE, (open_files(reaper), before[1]))
    box.start("true")
    await box.gone()
    assert box.reports["a"] == [{"failed": "Too many open files"}, {"gone": True}]
    resource.prlimit(reaper, resource.RLIMIT_NOFILE, before)
    assert await box.output("echo again", "b") == ["again"]
    assert is_alive(other) and not box.lost.is_set()


async def test_what_a_killed_first_process_leaves_running_ends_with_it_and_other_containers_stay(box: Box):
    box.start("echo up; sleep 300", "other")
    box.start("setsid sleep 300 & echo up; sleep 300")
    for name in ("a", "other"):
        await box.prints("up", name)
    pid, below = await box.grown(2)
    os.kill(pid, signal.SIGKILL)
    await box.gone()
    await until(lambda: not any(map(is_alive, below)))
    assert is_alive(await box.started("other"))
    assert box.value("other", "ended") is None


async def test_no_signal_is_blocked_or_ignored_that_the_engine_or_python_changed(box: Box):
    blocked, ignored = await box.output(["sed", "-n", "s/^Sig\\(Blk\\|Ign\\):\\t//p", "/proc/self/status"])
    assert int(blocked, 16) == 0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE, signal.SIGXFSZ):
        assert not int(ignored, 16) >> (number - 1) & 1, number


async def test_no_container_outlives_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for switch in ("1", "0"):
        monkeypatch.setenv(SWITCH, switch)
        box = Box(tmp_path)
        await box.processes.open(box.on_report)
        box.start("trap '' TERM; sleep 300", switch)
        box.start("setsid sleep 300 & sleep 300", f"{switch}b")
        pids = [await box.started(switch), await box.started(f"{switch}b")]
        await until(lambda pids=pids: all(descendants(pid) for pid in pids))
        below = [one for pid in pids for one in descendants(pid)]
        await box.processes.close()
        assert not any(is_alive(one) for one in (*pids, *below))


async def test_no_container_outlives_a_supervisor_that_is_killed(box: Box):
    box.start("sleep 300")
    pid = await box.started()
    await until(lambda: descendants(pid))
    below = descendants(pid)
    for one in (*descendants(supervisor())[:1], supervisor()) if box.processes.isolated else (supervisor(),):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    await asyncio.wait_for(box.lost.wait(), 30)
    await until(lambda: not any(is_alive(one) for one in (pid, *below)))
    box.lost.clear()


def bind(target: str, source: Path | str, **more: Any) -> dict[str, Any]:
    return {"target": target, "source": str(source), **more}


async def test_a_container_sees_only_its_own_processes(isolated: Box):
    own, count, flags = await isolated.output(
        "echo $$; ls -d /proc/[0-9]* | wc -l; grep ' /proc proc' /proc/mounts | tail -1 | cut -d' ' -f4"
    )
    assert int(own) < 10
    assert int(count) < 10
    assert {"rw", "nosuid", "nodev", "noexec"} <= set(flags.split(",")), "as container engines mount it"


async def test_a_host_name_of_its_own(isolated: Box):
    assert await isolated.output("cat /proc/sys/kernel/hostname", hostname="trainer") == ["trainer"]
    assert await isolated.output("cat /proc/sys/kernel/hostname", "b") == [os.uname().nodename]


async def test_a_volume_at_a_path_that_the_machine_does_not_have(isolated: Box, tmp_path: Path):
    (tmp_path / "data").mkdir()
    script = "echo new > /nas-of-a-test/deep/file; ls /nas-of-a-test; ls -d /usr /etc/passwd; touch /nas-of-a-test-too"
    isolated.start(script, mounts=[bind("/nas-of-a-test/deep", tmp_path / "data")])
    await isolated.gone()
    lines = isolated.log("a").read_text().splitlines()
    assert lines[:3] == ["deep", "/etc/passwd", "/usr"]
    assert "Read-only file system" in lines[3], "what is written beside it would be lost"
    assert (tmp_path / "data" / "file").read_text() == "new\n"
    assert await isolated.output("ls -d /nas-of-a-test 2>&1 | wc -l; ls -d /nas-of-a-test || true", "b") != []
    assert "nas-of-a-test\n" not in isolated.log("b").read_text()


async def test_a_mount_point_in_a_directory_of_the_user_is_created_and_what_is_written_beside_it_is_kept(
    isolated: Box, tmp_path: Path
):
    (tmp_path / "data").mkdir()
    (tmp_path / "code").mkdir()
    mounts = [bind(str(tmp_path / "code" / "a" / "b"), tmp_path / "data")]
    await isolated.output("echo x > a/b/in; echo y > model", cwd=str(tmp_path / "code"), mounts=mounts)
    assert (tmp_path / "code" / "model").read_text() == "y\n"
    assert (tmp_path / "data" / "in").read_text() == "x\n"
    assert (tmp_path / "code" / "a" / "b").is_dir()
    assert list((tmp_path / "code" / "a" / "b").iterdir()) == []


async def test_volumes_may_be_mounted_inside_each_other_in_any_order(isolated: Box, tmp_path: Path):
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    mounts = [bind("/nas-of-a-test/inner-one", tmp_path / "inner"), bind("/nas-of-a-test", tmp_path / "outer")]
    assert await isolated.output("cd /nas-of-a-test; ls . inner-one", mounts=mounts) == [
        *(".:", "inner-one", "outer", "", "inner-one:", "inner")
    ]


async def test_a_file_is_mounted_over_a_file_or_where_there_is_none(isolated: Box, tmp_path: Path):
    (tmp_path / "hosts").write_text("mine\n")
    mounts = [bind("/etc/hosts", tmp_path / "hosts"), bind(str(tmp_path / "new" / "hosts"), tmp_path / "hosts")]
    assert await isolated.output(f"cat /etc/hosts {tmp_path}/new/hosts", mounts=mounts) == ["mine", "mine"]
    assert await isolated.output(f"cat {tmp_path}/new/hosts", "b") == [], "the mount point alone is left"


async def test_a_read_only_volume_cannot_be_written(isolated: Box, tmp_path: Path):
    (tmp_path / "data").mkdir()
    mounts = [bind("/mnt", tmp_path / "data", readonly=True), bind("/srv", tmp_path / "data")]
    lines = await isolated.output("touch /mnt/a 2>/dev/null || echo refused; touch /srv/b && echo done", mounts=mounts)
    assert lines == ["refused", "done"]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["b"]


async def test_a_file_of_an_image_is_never_created_on_the_machine(isolated: Box, tmp_path: Path):
    (tmp_path / "start.sh").write_text("echo started\n")
    target = tmp_path / "root" / "start.sh"
    target.parent.mkdir()
    (target.parent / "kept").write_text("kept\n")
    mounts = [bind(str(target), tmp_path / "start.sh", image=True)]
    script = f"bash {target}; cat {target.parent}/kept; touch {target.parent}/more && echo writable"
    assert await isolated.output(script, mounts=mounts) == ["started", "kept", "writable"]
    assert [path.name for path in target.parent.iterdir()] == ["kept"]


async def test_links_of_a_directory_that_is_copied_stay_links(isolated: Box, tmp_path: Path):
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "link").symlink_to("elsewhere")
    (tmp_path / "file").touch()
    mounts = [bind(str(tmp_path / "image" / "new"), tmp_path / "file", image=True)]
    script = f"readlink {tmp_path}/image/link; grep -c {tmp_path}/stage /proc/self/mounts || true"
    assert await isolated.output(script, mounts=mounts) == ["elsewhere", "0"], "and only the copy is mounted"


async def test_a_volume_in_memory_is_shared_by_the_containers_of_a_pod_and_has_a_size(isolated: Box, tmp_path: Path):
    (tmp_path / "shm").mkdir()
    memory = {"memory": str(tmp_path / "shm"), "size": 1 << 20}
    mounts = [bind("/mnt", tmp_path / "shm", **memory), bind("/srv", tmp_path / "shm" / "part", **memory)]
    await isolated.output(
        "echo shared > /mnt/file; touch /srv/inside; df -k --output=size /mnt | tail -1; stat -c %a /mnt", mounts=mounts
    )
    assert isolated.log("a").read_text().split() == ["1024", "1777"], "every user may write to it"
    assert await isolated.output("cat /mnt/file; ls /mnt/part", "b", mounts=mounts) == ["shared", "inside"]
    assert list((tmp_path / "shm").iterdir()) == [], "the machine does not see it"


async def test_a_part_of_a_volume_in_memory_does_not_lead_out_of_it(isolated: Box, tmp_path: Path):
    (tmp_path / "shm").mkdir()
    memory = {"memory": str(tmp_path / "shm")}
    await isolated.output(f"ln -s {tmp_path} /mnt/out", mounts=[bind("/mnt", tmp_path / "shm", **memory)])
    isolated.start("true", "b", mounts=[bind("/srv", tmp_path / "shm" / "out" / "new", **memory)])
    await isolated.gone("b")
    assert isolated.value("b", "failed") == "subPath out/new points outside the volume; remove the link in it"
    assert not (tmp_path / "new").exists()


async def test_a_volume_in_memory_that_cannot_be_mounted_is_an_error_of_its_container(isolated: Box, tmp_path: Path):
    isolated.start("true", mounts=[bind("/mnt", tmp_path / "absent", memory=str(tmp_path / "absent"))])
    await isolated.gone()
    assert "No such file or directory" in isolated.value("a", "failed")
    assert await isolated.output("echo alive", "b") == ["alive"]


async def test_a_source_that_does_not_exist_is_an_error_of_its_container(isolated: Box, tmp_path: Path):
    isolated.start("true", mounts=[bind("/mnt", tmp_path / "absent")])
    await isolated.gone()
    assert "absent at /mnt: No such file or directory" in isolated.value("a", "failed")
    isolated.start("true", "b", mounts=[bind(str(tmp_path / "new"), tmp_path / "absent")])
    await isolated.gone("b")
    assert f"absent at {tmp_path}/new: No such file or directory" in isolated.value("b", "failed")
    assert not (tmp_path / "new").exists(), "no mount point is left behind"


async def test_a_directory_at_a_file_and_a_file_at_a_directory_are_named(isolated: Box, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    isolated.start("true", mounts=[bind(str(tmp_path / "file"), tmp_path / "data")])
    isolated.start("true", "b", mounts=[bind(str(tmp_path / "data"), tmp_path / "file")])
    await isolated.gone("a")
    await isolated.gone("b")
    assert isolated.value("a", "failed") == AT_A_FILE.format(path=tmp_path / "file")
    assert f"{tmp_path}/data is a directory on this machine, and a file is to be" in isolated.value("b", "failed")

"""What lies in a directory besides plain files: links, pipes, what permission denied; and other file systems."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from paddlejob.data import split, stage
from paddlejob.data.drivers.discovery import find
from paddlejob.errors import BadInput, NotPossible

NOBODY = 65534


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/a.txt").write_text("a\n")
    (tmp_path / "in/deep/b.txt").write_text("b\n")
    return tmp_path / "in"


def test_links_to_files_and_directories_are_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/c.txt").write_text("c\n")
    (tree / "linked.txt").symlink_to(tmp_path / "elsewhere/c.txt")
    (tree / "linked").symlink_to(tmp_path / "elsewhere")
    made = split(str(tree), str(tmp_path / "out"), 4, "files")
    assert [f.name for p in made.parts for f in p.files] == ["a.txt", "deep/b.txt", "linked.txt", "linked/c.txt"]
    assert not (tmp_path / "out/2/data/linked.txt").is_symlink()
    assert [file.name for file in stage(f"{tree}/l*", str(tmp_path / "here")).files] == ["linked.txt"]


@pytest.mark.parametrize("pattern", ["", "/*"])
def test_a_link_to_nothing_is_an_error_and_not_left_out(tree: Path, tmp_path: Path, pattern: str) -> None:
    (tree / "gone.txt").symlink_to(tree / "nowhere")
    with pytest.raises(BadInput, match=r"gone.txt is a broken link"):
        split(f"{tree}{pattern}", str(tmp_path / "out"), 1)
    assert not (tmp_path / "out").exists()


def test_a_link_to_a_directory_above_has_no_end(tree: Path, tmp_path: Path) -> None:
    (tree / "deep/round").symlink_to(tree)
    with pytest.raises(BadInput, match="deep/round is a link to a directory above it"):
        stage(str(tree), str(tmp_path / "out"))


def test_a_pipe_is_not_mistaken_for_an_empty_file(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "pipe")
    for source in (tree / "pipe", tree):
        with pytest.raises(BadInput, match="pipe is neither a file nor a directory"):
            split(str(source), str(tmp_path / "out"), 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize(
    ("shut", "by", "says"), [("deep", "files", "permission denied (at"), ("a.txt", "lines", "a.txt: permission denied")]
)
def test_an_unreadable_file_is_reported_and_not_left_out(tree: Path, shut: str, by: str, says: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        open_to_all = Path(name)
        open_to_all.chmod(0o755)
        shutil.copytree(tree, open_to_all / "in")
        (open_to_all / "in" / shut).chmod(0)
        (open_to_all / "out").mkdir()
        os.chown(open_to_all / "out", NOBODY, NOBODY)
        # Imported before it becomes someone who may not read our libraries.
        call = f"import os; from paddlejob.data import split; os.seteuid({NOBODY}); "
        call += f"split('{name}/in', '{name}/out', 1, {by!r})"
        ran = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
        assert says in ran.stderr.splitlines()[-1]
        assert not (open_to_all / "out/0").exists()


def test_what_else_is_at_the_destination_does_not_disturb(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "here/pipe")
    stage(str(tree), str(tmp_path / "here"))
    assert stage(str(tree), str(tmp_path / "here")).kept == ("a.txt", "deep/b.txt")


def test_a_file_that_ends_before_its_size_is_never_half_of_itself(tree: Path) -> None:
    [source] = find(str(tree / "a.txt"))
    with pytest.raises(NotPossible, match=r"a.txt: ended 8 bytes early"):
        list(replace(source, size=10).chunks())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_every_file_of_a_part_is_on_disk_before_the_part_is_seen(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, synced = os.fsync, []

    def watched(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    split(str(tree), str(tmp_path / "out"), 1, "files")
    drafts = f"{tmp_path}/out/.pdj-data/drafts"
    wanted = ["0/data", "0/data/a.txt", "0/data/deep", "0/data/deep/b.txt", "manifest.json"]
    assert {f"{drafts}/{name}" for name in wanted} | {f"{tmp_path}/out/0", f"{tmp_path}/out"} <= set(synced)


def test_names_that_are_not_text_are_kept(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    odd = os.fsdecode(b"b\xffd \n'name")
    (tmp_path / "in" / odd).write_text("x\n")
    split(str(tmp_path / "in"), str(tmp_path / "out"), 1)
    assert (tmp_path / "out/0/data" / odd).read_text() == "x\n"
    assert split(str(tmp_path / "in"), str(tmp_path / "out"), 1).kept == (0,)


def test_a_home_directory_and_dots_are_understood(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tree / "deep")
    split("~/in/a.txt", "../../out", 1)
    assert (tmp_path / "out/0/data/a.txt").read_text() == "a\n"


def in_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace of its own."""
    unshare = shutil.which("unshare")
    may = unshare and subprocess.run([unshare, "-rm", "true"], capture_output=True, check=False).returncode == 0
    if not may:
        pytest.skip("mount namespaces are not allowed here")
    return subprocess.run(["unshare", "-rm", "sh", "-ec", script], capture_output=True, text=True, check=False)


def test_a_disk_that_fills_up_is_reported_and_no_half_part_is_seen(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"0123456\n" * 300_000)
    (tmp_path / "disk").mkdir()
    (tmp_path / "fill.py").write_text(
        "import os\n"
        "from glob import glob\n"
        "from paddlejob.data import split\n"
        "def fill(step, done, total):\n"
        "    if step == 'writing' and not done:\n"
        "        with open('disk/hog', 'wb') as hog:\n"
        "            os.posix_fallocate(hog.fileno(), 0, 2 << 20)\n"
        "try:\n"
        "    split('train.txt', 'disk/out', 2, progress=fill)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
        "print({os.path.getsize(path) for path in glob('disk/out/*/data/train.txt')} <= {1_200_000})\n"
        "os.remove('disk/hog')\n"
        "print(split('train.txt', 'disk/out', 2).records)\n"
    )
    here = f"cd {tmp_path}; mount -t tmpfs -o size=4m none disk; {sys.executable} fill.py"
    ran = in_namespace(here)
    message, only_whole, after = ran.stdout.splitlines()
    assert "NotPossible disk/out: No space left on device; free some space, then run the same command" in message
    assert (only_whole, after) == ("True", "300000"), ran.stderr


def test_too_small_a_disk_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"0123456\n" * 300_000)
    (tmp_path / "disk").mkdir()
    command = f"{sys.executable} -m paddlejob data split train.txt disk/out --parts 2"
    ran = in_namespace(f"cd {tmp_path}; mount -t tmpfs -o size=1m none disk; {command}")
    assert "disk/out: not enough space for 2400000 more bytes; free some space" in ran.stderr


def test_a_destination_on_another_file_system_is_fine_but_not_a_part_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\nb\n")
    (tmp_path / "disk").mkdir()
    command = f"{sys.executable} -m paddlejob data split train.txt disk --parts 2"
    mounted = f"cd {tmp_path}; mount -t tmpfs -o size=1m none disk"
    assert "disk/1/data  1 lines" in in_namespace(f"{mounted}; {command}").stdout
    inner = f"{mounted}; mkdir disk/1; mount -t tmpfs -o size=1m none disk/1; {command}"
    ran = in_namespace(inner)
    assert ran.returncode == 2 and "1/data is on another file system than the directory itself" in ran.stderr

"""What is seen while a split runs, after it is killed, and how much memory it takes: in real processes."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paddlejob.data import split
from paddlejob.errors import NotPossible

MIB = 1 << 20
PARTS = 8

# Slowed down between chunks, so that the test finds it in the middle on any machine.
SLOW = """
import sys, time
from paddlejob.data import split
def tell(step, done, total):
    if step == "writing":
        time.sleep(0.02)
split(sys.argv[1], sys.argv[2], {parts}, progress=tell)
"""


def make_lines(path: Path, mib: int) -> Path:
    block = b"".join(b"%07d %s\n" % (number, b"x" * (number % 120)) for number in range(MIB // 69))
    with path.open("wb") as file:
        for _ in range(mib * MIB // len(block) + 1):
            file.write(block)
    return path


def start_slow_split(source: Path, dest: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SLOW.format(parts=PARTS), str(source), str(dest)])


def visible(dest: Path) -> dict[int, int]:
    """The size of each part that can be seen."""
    return {int(p.parent.parent.name): p.stat().st_size for p in dest.glob("[0-9]*/data/train.txt")}


def wait_for_parts(running: subprocess.Popen[bytes], dest: Path, count: int) -> None:
    until = time.monotonic() + 60
    while len(visible(dest)) < count:
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.005)


def test_a_killed_split_resumes_and_does_not_write_whole_parts_again(tmp_path: Path) -> None:
    source, dest = make_lines(tmp_path / "train.txt", 32), tmp_path / "out"
    running = start_slow_split(source, dest)
    wait_for_parts(running, dest, 2)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = {part: (dest / f"{part}/data/train.txt").stat().st_ino for part in visible(dest)}
    assert 2 <= len(before) < PARTS and not (dest / "manifest.json").exists()
    (dest / ".pdj-data/journal.jsonl").open("ab").write(b'{"part": 7, "torn')

    made = split(str(source), str(dest), PARTS)

    assert set(made.kept) == before.keys()
    assert {part: (dest / f"{part}/data/train.txt").stat().st_ino for part in made.kept} == before
    assert b"".join((dest / f"{n}/data/train.txt").read_bytes() for n in range(PARTS)) == source.read_bytes()
    assert sorted(p.name for p in dest.iterdir()) == [*map(str, range(PARTS)), "manifest.json"]


def test_no_half_part_is_ever_seen(tmp_path: Path) -> None:
    source, dest = make_lines(tmp_path / "train.txt", 16), tmp_path / "out"
    running = start_slow_split(source, dest)
    seen: set[tuple[int, int]] = set()
    while running.poll() is None:
        seen |= set(visible(dest).items())
        time.sleep(0.002)
    assert running.returncode == 0
    assert seen <= set(visible(dest).items()) and len(seen) >= PARTS // 2


def test_ctrl_c_leaves_only_what_the_next_run_takes_up(tmp_path: Path) -> None:
    source, dest = make_lines(tmp_path / "train.txt", 32), tmp_path / "out"
    running = start_slow_split(source, dest)
    wait_for_parts(running, dest, 1)
    with pytest.raises(NotPossible, match="another pdj process is writing here"):
        split(str(source), str(dest), PARTS)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) != 0
    assert not (dest / ".pdj-data/drafts").exists()
    sizes = [p.stat().st_size for p in (dest / ".pdj-data").rglob("*") if p.is_file()]
    assert sum(sizes) < 10_000
    assert len(split(str(source), str(dest), PARTS).kept) >= 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    small, large = (peak_memory(tmp_path, mib) for mib in (8, 96))
    assert large < small * 1.15 + 8 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("buffer", "sizes"), [(8, (12, 60)), pytest.param(64, (64, 256), marks=pytest.mark.full)], ids=["smaller", "real"]
)
def test_memory_of_a_shuffle_is_bounded_by_its_buffer(tmp_path: Path, buffer: int, sizes: tuple[int, int]) -> None:
    small, large = (peak_memory(tmp_path, mib, buffer) for mib in sizes)
    assert large < small * 1.15 + 8 * MIB
    assert large < 200 * MIB


def peak_memory(folder: Path, mib: int, buffer: int = 0) -> int:
    """The peak of a process of its own, as it reads it itself: getrusage would count its parent's before exec."""
    source = make_lines(folder / f"{mib}.txt", mib)
    code = f"""
from paddlejob.data import split
from paddlejob.data.partition import shuffle
shuffle.BUFFER, shuffle.BUCKET_BYTES = {buffer * MIB}, {buffer * MIB // 4}
split({str(source)!r}, {str(folder / str(mib))!r}, 4, shuffle={buffer > 0})
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
    ran = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    return int(ran.stdout) * 1024


def test_a_full_disk_is_reported_and_the_run_can_resume(tmp_path: Path) -> None:
    source, dest = make_lines(tmp_path / "train.txt", 4), tmp_path / "out"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))

    code = f"from paddlejob.data import split\nsplit({str(source)!r}, {str(dest)!r}, 2)"
    failed = subprocess.run([sys.executable, "-c", code], preexec_fn=limit, stderr=subprocess.PIPE, check=False)
    assert b"NotPossible" in failed.stderr and b"File too large" in failed.stderr
    assert visible(dest) == {}
    assert split(str(source), str(dest), 2).kept == ()

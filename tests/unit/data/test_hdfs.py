"""A real HDFS on this machine: what is seen there while a split runs, is killed, or loses a node."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from paddlejob.data import Manifest, split, stage
from paddlejob.data.drivers.resolve import filesystem
from paddlejob.errors import BadInput, NotPossible
from testbed.addons.hdfs import Hdfs, missing

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(missing()), reason=missing())]

LINES = b"".join(map(b"line %d\r\n".__mod__, range(1_000_000)))
PARTS = 6


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    try:
        made = Hdfs()
    except NotPossible as error:
        pytest.skip(str(error))
    with made:
        yield made


@pytest.fixture
def there(hdfs: Hdfs) -> str:
    return f"{hdfs.url}/{uuid4().hex}"


@pytest.fixture
def here(tmp_path: Path) -> str:
    (tmp_path / "train.txt").write_bytes(LINES)
    return str(tmp_path / "train.txt")


def seen(url: str) -> dict[str, int]:
    """The size of every file that a reader finds in the parts."""
    fs, path = filesystem(url)
    found: dict[str, dict[str, Any]] = fs.find(path, detail=True) if fs.exists(path) else {}
    sizes = {name.removeprefix(f"{path}/"): info["size"] for name, info in found.items()}
    return {name: size for name, size in sizes.items() if "/data/" in name and not name.startswith(".pdj-data")}


def content(url: str, made: Manifest) -> bytes:
    fs, path = filesystem(url)
    return b"".join(fs.cat_file(f"{path}/{part.part}/data/{file.name}") for part in made.parts for file in part.files)


def start_slow_split(source: str, dest: str) -> subprocess.Popen[bytes]:
    slow = (
        "import sys, time\n"
        "from paddlejob.data import split\n"
        f"split(sys.argv[1], sys.argv[2], {PARTS}, progress=lambda step, *_: time.sleep(0.05 * (step == 'writing')))"
    )
    return subprocess.Popen([sys.executable, "-c", slow, source, dest])


def test_to_hdfs_and_back_again(here: str, there: str, tmp_path: Path) -> None:
    made = split(here, f"{there}/out", PARTS)
    assert content(f"{there}/out", made) == LINES
    assert split(here, f"{there}/out", PARTS).kept == tuple(range(PARTS))
    fs, path = filesystem(f"{there}/out")
    assert {name.rpartition("/")[2] for name in fs.ls(path)} == {*map(str, range(PARTS)), "manifest.json"}

    back = split(f"{there}/out/*/data/*", str(tmp_path / "back"), 2)
    assert b"".join(p.read_bytes() for p in sorted((tmp_path / "back").glob("[0-9]/data/*/data/*"))) == LINES
    assert [part.records for part in back.parts] == [500_000, 500_000]
    stage(f"{there}/out/3/data", str(tmp_path / "staged"))
    assert (tmp_path / "staged/train.txt").stat().st_size == seen(f"{there}/out")["3/data/train.txt"]


def test_from_hdfs_to_hdfs_shuffled_is_the_same_each_time(here: str, there: str) -> None:
    stage(here, f"{there}/in")
    one, two = (split(f"{there}/in", f"{there}/{name}", 3, shuffle=True, seed=5) for name in ("a", "b"))
    assert content(f"{there}/a", one) == content(f"{there}/b", two)
    assert sorted(content(f"{there}/a", one).splitlines()) == sorted(LINES.splitlines())


def test_no_half_part_is_ever_seen_and_a_killed_run_is_taken_up(here: str, there: str) -> None:
    running = start_slow_split(here, there)
    views = []
    while running.poll() is None:
        views.append(seen(there))
        if len(views[-1]) >= 2:
            running.send_signal(signal.SIGKILL)
            running.wait()
        time.sleep(0.01)
    assert running.returncode == -signal.SIGKILL
    left = seen(there)
    made = split(here, there, PARTS)
    assert 2 <= len(made.kept) < PARTS and {f"{part}/data/train.txt" for part in made.kept} <= left.keys()
    assert content(there, made) == LINES
    whole = seen(there).items()
    assert all(view.items() <= whole for view in views)


def test_an_earlier_run_gives_way_to_a_later(here: str, there: str) -> None:
    later: list[Manifest] = []

    def start_another(step: str, done: int, total: int | None) -> None:
        if step == "writing" and total and done > total // 2 and not later:
            later.append(split(here, there, 3))

    with pytest.raises(NotPossible, match=r"another pdj process has started writing here|run the same command again"):
        split(here, there, 3, progress=start_another)
    assert content(there, later[0]) == LINES


def test_a_split_is_replaced_only_if_that_is_wanted(here: str, there: str) -> None:
    split(here, there, 3)
    with pytest.raises(BadInput, match=r"contains a split of .* into 3"):
        split(here, there, 2)
    assert content(there, split(here, there, 2, overwrite=True)) == LINES
    assert seen(there).keys() == {"0/data/train.txt", "1/data/train.txt"}


def test_a_file_that_changes_while_it_is_read_is_noticed(here: str, there: str, tmp_path: Path) -> None:
    stage(here, there)
    fs, path = filesystem(there)

    def meddle(step: str, done: int, total: int | None) -> None:
        if step == "writing" and not done:
            fs.pipe_file(f"{path}/train.txt", LINES[::-1])

    with pytest.raises(NotPossible, match="changed while it was read"):
        split(f"{there}/train.txt", str(tmp_path / "out"), 2, progress=meddle)
    assert list((tmp_path / "out").glob("[0-9]*")) == []


def test_an_unreachable_name_node_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotPossible, match=r"127\.0\.0\.1:9 does not respond"):
        split("webhdfs://127.0.0.1:9/train.txt", str(tmp_path / "out"), 2)


def test_a_lost_data_node_is_reported_and_the_run_resumes_when_it_is_back(
    hdfs: Hdfs, here: str, there: str, tmp_path: Path
) -> None:
    stage(here, f"{there}/in")

    def lose(step: str, done: int, total: int | None) -> None:
        if step == "writing" and total and done > total // 2:
            hdfs.data_node.kill()

    with pytest.raises(NotPossible, match="to which the name node redirected the request, does not respond"):
        split(here, f"{there}/out", PARTS, progress=lose)
    left = seen(f"{there}/out")
    with pytest.raises(NotPossible, match="to which the name node redirected the request, does not respond"):
        split(f"{there}/in", str(tmp_path / "out"), 2)
    hdfs.data_node.start()
    hdfs.data_node.wait_until(lambda: hdfs.can_read(f"{there.removeprefix(hdfs.url)}/in/train.txt"))

    made = split(here, f"{there}/out", PARTS)

    assert content(f"{there}/out", made) == LINES
    assert 1 <= len(made.kept) < PARTS and left.items() <= seen(f"{there}/out").items()
    assert split(f"{there}/in", str(tmp_path / "out"), 2).records == 1_000_000

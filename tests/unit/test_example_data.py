"""The bundled examples: each module exists once, images run programs that exist, and workers read their own samples."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.images import argv, find_image
from testbed.images.productimages import TRAINING, Training

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "src" / "paddlejob" / "examples"
DOCKERFILES = sorted((ROOT / "examples" / "Dockerfiles").glob("*.Dockerfile"))


def load(name: str) -> ModuleType:
    """A module of the examples, which are no package."""
    path = EXAMPLES / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def criteo() -> ModuleType:
    return load("wide_and_deep/criteo.py")


@pytest.fixture(scope="module")
def sharding() -> ModuleType:
    pytest.importorskip("numpy")
    return load("collective/sharding.py")


def test_no_module_of_the_examples_is_a_link_or_a_copy_of_another():
    files = [path for path in EXAMPLES.rglob("*.py") if "__pycache__" not in path.parts]
    assert not [path for path in files if path.is_symlink()]
    assert len({path.read_bytes() for path in files}) == len(files)


@pytest.mark.parametrize("training", [one for one in TRAINING if one.directory], ids=lambda one: one.name)
def test_an_image_of_the_test_cluster_and_the_embedded_engine_run_the_same_program(training: Training):
    command = [*training.entrypoint, *training.command]
    assert argv({"name": "paddle", "image": training.name}, RunOptions()) == command
    directory = find_image(training.name, RunOptions()).directory
    if directory:
        assert directory == EXAMPLES / training.directory
        assert (directory / command[-1]).is_file()


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.stem)
def test_a_dockerfile_runs_the_command_that_the_embedded_engine_runs(dockerfile: Path):
    text = dockerfile.read_text()
    (image,) = re.findall(r"^# docker build .* -t (\S+) ", text)
    (command,) = re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.MULTILINE)
    assert json.loads(command) == argv({"name": "paddle", "image": image}, RunOptions())


def test_a_line_of_the_public_data_set_is_read(criteo: ModuleType):
    counts = ["1", "", "-3", *["5"] * 10]
    sample = criteo.parse("\t".join(["1", *counts, "68fd1e64", "", *["0b153874"] * 24]) + "\r\n")
    assert sample.label == 1
    assert sample.counts[1] == sample.counts[2] == 0
    assert sample.ids[1] == 0, "a missing category"
    assert len(set(sample.ids)) == 26, "the same word in two columns is two categories"


def test_a_line_with_fields_missing_is_an_error_that_shows_it(criteo: ModuleType):
    with pytest.raises(ValueError, match=r"expected 40 fields in a Criteo line, found 2: '1\\t5"):
        criteo.parse("1\t5\n")


def test_the_parts_of_all_workers_and_the_held_out_lines_make_up_the_file(criteo: ModuleType):
    lines = list(criteo.generate(500, seed=3))
    parts = [list(criteo.read(lines, criteo.Part(index, 3), held_out=False)) for index in range(3)]
    tested = list(criteo.read(lines, criteo.Part(), held_out=True))
    assert [len(part) for part in parts] == [150, 150, 150]
    assert len(tested) == 50
    assert sorted(sum(parts, tested)) == sorted(map(criteo.parse, lines))


def test_generated_data_is_the_same_every_time_and_different_for_every_worker(criteo: ModuleType):
    assert list(criteo.generate(20, seed=1)) == list(criteo.generate(20, seed=1))
    assert list(criteo.generate(20, seed=1)) != list(criteo.generate(20, seed=2))


def test_the_reader_is_found_in_a_path_with_spaces_quotes_and_chinese_characters(tmp_path: Path):
    home = tmp_path / "it's 数据 $HOME"
    home.mkdir()
    (home / "criteo.py").write_bytes((EXAMPLES / "wide_and_deep" / "criteo.py").read_bytes())
    ask = "import criteo; print(criteo.reader_command(criteo.Part(limit=2)))"
    command = subprocess.run([sys.executable, "-c", ask], cwd=home, capture_output=True, text=True, check=True)
    make = "import criteo; print('\\n'.join(criteo.generate(9, seed=1)))"
    lines = subprocess.run([sys.executable, "-c", make], cwd=home, capture_output=True, text=True, check=True)
    out = subprocess.run(
        ["sh", "-c", command.stdout], cwd="/", input=lines.stdout, capture_output=True, text=True, check=True
    )
    slots = [line.split() for line in out.stdout.splitlines()]
    assert len(slots) == 2
    assert all(len(slot) == 2 + 14 + 27 and slot[2] == "13" and slot[16] == "26" for slot in slots)


@pytest.mark.parametrize("attempts", [[(3, 20)], [(3, 7), (2, 9), (4, 20)], [(1, 10), (5, 20)], [(4, 3), (4, 20)]])
def test_a_job_whose_size_changes_trains_on_every_sample_once_per_epoch(sharding: ModuleType, attempts: list):
    """Each attempt has a number of workers and the step at which it is killed; two epochs of ten steps."""
    trained: list[list[int]] = []
    for workers, end in attempts:
        shards = [sharding.Shard(103, 10, epochs=2, worker=worker, workers=workers) for worker in range(workers)]
        for shard in shards:
            shard.begin = len(trained)
        assert [len(shard) for shard in shards] == [20 - len(trained)] * workers
        steps = [sorted(chain(*parts)) for parts in zip(*shards, strict=True)]
        trained += steps[: end - len(trained)]
    whole = sharding.Shard(103, 10, epochs=2, worker=0, workers=1)
    assert trained == [sorted(step) for step in whole]
    for epoch in (trained[:10], trained[10:]):
        assert len(set(chain(*epoch))) == 100, "of 103 samples, the last three do not fill a step"
    assert trained[:10] != trained[10:]


def test_a_batch_that_leaves_a_worker_without_samples_is_an_error_that_says_what_to_change(sharding: ModuleType):
    with pytest.raises(SystemExit, match=r"BATCH_SIZE 2 is outside 3 .* to 100"):
        sharding.Shard(100, 2, epochs=1, worker=0, workers=3)

"""Commands that train a program and look at it, as the README and the documentation print them."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.pdj import Pdj

ROOT = Path(__file__).parents[2]
SHOWS = "import os, sys; print('loss=1', os.environ['TRAINING_ROLE'], sys.argv[1:])"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: none
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {token: none}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
"""
PAGES = ("README.md", "docs/index.md", "docs/howto/programs.md")
TRAINS = pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="needs PaddlePaddle")


def commands(page: str, about: str) -> list[list[str]]:
    """The commands of the blocks that mention a job or a file."""
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    lines = [
        line
        for block in blocks
        if re.search(rf"^pdj [^#\n]*\b{about}\b", block, re.MULTILINE)
        for line in block.splitlines()
    ]
    return [shlex.split(line, comments=True) for line in lines]


def test_both_languages_show_the_same_commands():
    for about in ("train", "job.yaml"):
        assert commands("README.md", about) == commands("README.zh-CN.md", about) != []


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_every_command_about_a_program_works_as_printed(pdj: Pdj, page: str):
    """With a small program; tests/local/test_programs.py and tests/e2e/test_code.py train with PaddlePaddle."""
    (pdj.folder / "train.py").write_text(SHOWS)
    (pdj.folder / "kubeconfig").write_text(KUBECONFIG)
    pdj.environment |= {"KUBECONFIG": str(pdj.folder / "kubeconfig"), "XDG_CONFIG_HOME": str(pdj.folder / "config")}
    for _ in range(3):
        assert pdj("run", "train.py").returncode == 0
    for program, verb, *arguments in commands(page, "train"):
        done = pdj(verb, *(["--dry-run"] if verb == "submit" else []), *arguments)
        assert (program, done.returncode) == ("pdj", 0), done.stderr
        if verb == "submit":
            worker = yaml.safe_load(done.stdout)["spec"]["worker"]
            assert worker["replicas"] == int(arguments[arguments.index("--workers") + 1])
        elif verb == "run":
            assert "loss=1 TRAINER" in pdj.log("train", "worker-1")
        elif verb == "watch":
            assert "train completed in" in done.stdout
        elif verb == "logs":
            assert done.stdout.count("loss=1") == (1 if "--run" in arguments else 2)


@TRAINS
@pytest.mark.full
@pytest.mark.xdist_group("training")
def test_the_job_file_of_the_readme_trains_as_printed(pdj: Pdj):
    (text,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    (pdj.folder / "job.yaml").write_text(text)
    printed = {verb: pdj(verb, *arguments, timeout=240) for _, verb, *arguments in commands("README.md", "job.yaml")}
    assert {verb: done.returncode for verb, done in printed.items()} == dict.fromkeys(printed, 0), printed
    assert "job.yaml: valid (wide-and-deep)" in printed["validate"].stdout
    assert "wide-and-deep-ps-1" in printed["plan"].stdout
    assert "LOSS" in printed["metrics"].stdout
    assert "wide-and-deep completed" in printed["why"].stdout

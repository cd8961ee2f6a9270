"""200 random bad job files: each gets one message with its file, and none a traceback."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import pytest

from paddlejob.api.validate import parse
from paddlejob.cli import main as cli
from paddlejob.client.files import jobs_in, objects_in
from paddlejob.errors import BadInput
from tests.support.bad_files import bad_files
from tests.support.called_pdj import pdj

WANTED = 200
SEED = 11


def test_200_bad_files_get_one_message_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.yaml"
    monkeypatch.setattr(sys, "argv", ["pdj", "validate", str(path)])
    bad = 0
    for content in islice(bad_files(SEED), 3 * WANTED):
        path.write_bytes(content)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = capfd.readouterr()
        assert ended.value.code in (0, 2), (content, output.err)
        if ended.value.code == 2:
            bad += 1
            assert_one_message(output.err, str(path))
        if bad == WANTED:
            break
    assert bad >= WANTED


def assert_one_message(output: str, name: str) -> None:
    """Warnings may come first; every line of the message starts with the file, and none is repeated."""
    lines = [line for line in output.splitlines() if not line.startswith("warning: ")]
    assert lines[0].startswith(f"pdj: {name}"), output
    assert all(line.startswith(f"{name}:") for line in lines[1:]), output
    assert len(set(lines)) == len(lines), output
    assert "Traceback" not in output
    assert "bug in pdj" not in output


def test_the_commands_reject_a_sample_of_them_and_start_nothing(tmp_path: Path) -> None:
    rejected = [content for content in islice(bad_files(SEED + 1), 60) if not runs(content, tmp_path)]
    for number, content in enumerate(rejected[:8]):
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(content)
        for verb in ("validate", "run"):
            done = pdj(verb, str(path), PADDLEJOB_STATE=str(tmp_path / "state"))
            assert done.returncode == 2, (content, done)
            assert_one_message(done.stderr, str(path))
    assert not list((tmp_path / "state").glob("jobs/*/*"))


def runs(content: bytes, folder: Path) -> bool:
    path = folder / "candidate.yaml"
    path.write_bytes(content)
    try:
        for job in jobs_in(str(path), objects_in(str(path))):
            parse(job, str(path))
    except BadInput:
        return False
    return True

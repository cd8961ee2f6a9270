"""`pdj data` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.data import app
from paddlejob.errors import BadInput


@pytest.fixture
def lines(tmp_path: Path) -> str:
    (tmp_path / "train.txt").write_text("a\nb\nc\n")
    return str(tmp_path / "train.txt")


def test_split_says_what_each_part_has(lines: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["split", lines, f"{tmp_path}/out", "--parts", "2"])
    assert ran.exit_code == 0
    assert ran.stdout.splitlines() == [
        f"{tmp_path}/out/0/data  1 lines  2 bytes",
        f"{tmp_path}/out/1/data  2 lines  4 bytes",
    ]


def test_split_prints_json_for_scripts_and_nothing_else_on_standard_output(lines: str, tmp_path: Path) -> None:
    command = ["split", lines, f"{tmp_path}/out", "--parts", "3", "--shuffle", "--seed", "4", "-o", "json"]
    first, second = (json.loads(CliRunner().invoke(app, command).stdout) for _ in range(2))
    assert [part["records"] for part in first["parts"]] == [1, 1, 1]
    assert (first.pop("kept"), second.pop("kept")) == ([], [0, 1, 2])
    assert first == second == json.loads((tmp_path / "out/manifest.json").read_text())


def test_stage_says_how_much_it_brought(lines: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["stage", lines, f"{tmp_path}/here"])
    assert ran.stdout == f"{tmp_path}/here  1 files  6 bytes  (0 were there)\n"


def test_bad_input_reaches_main_as_one_error(lines: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["split", lines, f"{tmp_path}/out", "--parts", "9"])
    assert isinstance(ran.exception, BadInput)


def test_ctrl_c_says_how_to_go_on(lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("paddlejob.data.split", interrupted)
    ran = CliRunner().invoke(app, ["split", lines, f"{tmp_path}/out", "--parts", "2"])
    assert ran.exit_code == 130
    assert "run the same command again to go on" in ran.stderr

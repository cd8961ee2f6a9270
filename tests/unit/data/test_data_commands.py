"""`pdj data` as a user types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.verbs.data import app
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
    assert ran.stdout == f"{tmp_path}/here  1 files  6 bytes  (0 unchanged)\n"


def test_bad_input_reaches_main_as_one_error(lines: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["split", lines, f"{tmp_path}/out", "--parts", "9"])
    assert isinstance(ran.exception, BadInput)


def test_ctrl_c_says_how_to_resume(tmp_path: Path) -> None:
    read = threading.Event()

    class NeverDone(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            if self.command == "GET":
                read.set()
                time.sleep(60)

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), NeverDone)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [sys.executable, "-m", "paddlejob", "data", "split", f"http://127.0.0.1:{server.server_port}/x", "out"]
    running = subprocess.Popen(
        [*command, "--parts", "2"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts programs in the background with Ctrl-C switched off, and tests may run in one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert read.wait(60)
    running.send_signal(signal.SIGINT)
    output = running.communicate(timeout=30)[1]
    server.shutdown()
    assert running.returncode == 130
    assert "run the same command again to resume" in output and "Traceback" not in output
    assert list((tmp_path / "out").glob("[0-9]*")) == []

"""Opening the browser: a file hides the token, and no text browser takes over the terminal of a server."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from paddlejob.web.browser import opened

SCRIPT = """
import sys, time
from pathlib import Path
from paddlejob.web.browser import opened
with opened("http://127.0.0.1:8700/#token=secret"):
    for _ in range(int(sys.argv[2])):
        if Path(sys.argv[1]).exists():
            break
        time.sleep(0.05)
"""
BROWSER = """#!/bin/sh
printf '%s\\n' "$@" > "$0.part"
cat "$(echo "$1" | sed s,file://,,)" >> "$0.part"
mv "$0.part" "$0.called"
"""


def open_with(folder: Path, name: str, looks: int, **environment: str) -> str:
    """What the browser of this name was called with, and the file that it was to open."""
    program, called = folder / name, folder / f"{name}.called"
    program.write_text(BROWSER)
    program.chmod(0o755)
    variables = {"PATH": f"{folder}:{os.environ['PATH']}", "TERM": "xterm", "TMPDIR": str(folder), **environment}
    subprocess.run([sys.executable, "-c", SCRIPT, str(called), str(looks)], env=variables, check=True, timeout=60)
    return called.read_text() if called.exists() else ""


def test_a_browser_gets_a_file_and_not_the_token_on_its_command_line(tmp_path: Path):
    address, page = open_with(tmp_path, "mine", 1000, BROWSER=str(tmp_path / "mine")).splitlines()
    assert address.startswith("file:///") and "secret" not in address
    assert "url=http://127.0.0.1:8700/#token=secret" in page
    assert not list(tmp_path.glob("pdj-web-*")), "the file is gone"


def test_without_a_display_no_text_browser_is_started(tmp_path: Path):
    assert open_with(tmp_path, "w3m", 10) == ""


def test_a_browser_is_opened_by_a_file_that_only_its_user_can_read(monkeypatch: pytest.MonkeyPatch):
    seen: queue.Queue[str] = queue.Queue()
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", seen.put)
    with opened("http://x/?a=1&b=2#token=t"):
        path = Path(seen.get(timeout=60).removeprefix("file://"))
        assert 'content="0; url=http://x/?a=1&amp;b=2#token=t"' in path.read_text()
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()
    with opened(""):
        assert seen.empty()

"""Control sequences in status, events and logs, which somebody else wrote, do not reach the terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from paddlejob.cli.output.logs import print_logs
from paddlejob.cli.output.terminal import CleanOutput, unfiltered
from paddlejob.cli.run.live import LiveScreen
from paddlejob.cli.run.observation import Observation
from paddlejob.cli.run.output import LastingOutput
from paddlejob.local.state.store import JobStore
from paddlejob.logs.line import LogLine
from paddlejob.text import printable
from tests.support.called_pdj import pdj
from tests.support.job_views import view
from tests.support.web_jobs import stored

HOSTILE = "a\x1b[31mb\x1b]0;title\x07c\x1b[2Jd\r\x08e\x1bcf\x9b1mg"
CLEAN = "abcdecf\\u009b1mg"


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


@pytest.mark.parametrize(
    ("text", "shown", "coloured"),
    [
        ("训练\tloss 1\n", "训练\tloss 1\n", "训练\tloss 1\n"),
        (HOSTILE, CLEAN, "a\x1b[31mbcd\recf1mg"),
        ("\x1b]0;not ended", "]0;not ended", "]0;not ended"),
        ("\x1bP1$r\x1b\\x\x1b[1;2", "x[1;2", "x[1;2"),
        ("10%\r20%\x1b[38;5;9m", "10%20%", "10%\r20%\x1b[38;5;9m"),
        ("\x7f", "\\u007f", ""),
        ("a\u202egnp.exe\u2066b", "a\\u202egnp.exe\\u2066b", "agnp.exeb"),
    ],
)
def test_a_text_loses_what_controls_a_terminal(text: str, shown: str, coloured: str):
    assert printable(text) == shown
    assert printable(text, colours=True) == coloured


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("arguments", [("get", "mnist"), ("why", "mnist"), ("list", "-o", "wide")])
def test_verbs_print_the_status_and_events_of_others_clean(
    arguments: tuple[str, ...], encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    stored(JobStore(), phase="Failed", reason="Evil", message=HOSTILE, completionTime="2027-01-15T08:00:00Z")
    done = pdj(*arguments, encoding=encoding)
    assert CLEAN in done.stdout
    assert not set(done.stdout + done.stderr) & set("\x1b\x07\x08\r\x9b")


def test_errors_are_printed_clean():
    done = pdj("get", "x\x1b]0;title\x07")
    assert done.returncode == 2 and "\x1b" not in done.stderr


def test_the_live_view_draws_the_text_of_others_clean(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    stream = LastingOutput(CleanOutput(terminal))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdout", stream)
    screen = LiveScreen(lambda *_: Observation())
    screen.show([view(message=HOSTILE, reason="R")])
    screen.close()
    assert "]0;titlecdecf\\u009b1mg" in terminal.shown, "rich drops the end of the title, so its text is shown"
    assert "\x1b]" not in terminal.shown and "\x1b[2J" not in terminal.shown and "\x9b" not in terminal.shown
    assert "\x1b[?25l" in terminal.shown, "its own sequences arrive"
    assert isinstance(unfiltered(stream), LastingOutput), "which also lasts when the terminal is closed"  # type: ignore[arg-type]


@pytest.mark.parametrize("several", [False, True])
def test_logs_on_a_terminal_keep_colours_only_and_a_pipe_gets_every_byte(
    several: bool, monkeypatch: pytest.MonkeyPatch
):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    line = LogLine("worker-0", 1, None, b"\x1b[32mok\x1b]0;title\x07\xff")
    name = b"[worker-0] " if several else b""
    print_logs(several, [[line]])
    assert terminal.buffer.getvalue() == name + b"\x1b[32mok\xff\n"  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    print_logs(several, [[line]])
    assert sys.stdout.buffer.getvalue() == name + line.content + b"\n"  # type: ignore[attr-defined]

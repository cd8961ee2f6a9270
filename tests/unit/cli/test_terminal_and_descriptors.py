"""Keys, output that goes away, and how `pdj` ends when its reader or its user does."""

from __future__ import annotations

import errno
import io
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from paddlejob.cli import main as main_module
from paddlejob.cli.run.keyboard import Keyboard
from paddlejob.cli.run.output import LastingOutput
from tests.support.called_pdj import pdj


class Terminal:
    """A terminal as standard input; `foreground` says whether this process may read it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leader, self.follower = pty.openpty()
        self.foreground = True
        monkeypatch.setattr(sys, "stdin", os.fdopen(self.follower, closefd=False))
        monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + (not self.foreground))

    @property
    def waits_for_enter(self) -> bool:
        return bool(termios.tcgetattr(self.follower)[3] & termios.ICANON)

    def press(self, key: bytes) -> None:
        os.write(self.leader, key)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal(monkeypatch)
    yield made
    os.close(made.leader)
    os.close(made.follower)


def test_a_key_needs_no_enter_and_the_terminal_is_put_back(terminal: Terminal):
    assert terminal.waits_for_enter
    with Keyboard() as keyboard:
        assert not terminal.waits_for_enter
        assert keyboard.wait(0.0) == ""
        terminal.press(b"q")
        assert keyboard.wait(60.0) == "q"
    assert terminal.waits_for_enter


def test_a_command_in_the_background_leaves_the_terminal_alone(terminal: Terminal):
    terminal.foreground = False
    with Keyboard() as keyboard:
        assert terminal.waits_for_enter
        terminal.press(b"q\n")
        assert keyboard.wait(0.0) == ""


def test_the_end_of_the_input_is_no_key(monkeypatch: pytest.MonkeyPatch, terminal: Terminal):
    with Keyboard() as keyboard:
        monkeypatch.setattr(os, "read", lambda *_: b"")
        terminal.press(b"x")
        assert keyboard.wait(60.0) == ""
        monkeypatch.setattr(os, "read", lambda *_: pytest.fail("it is not read again"))
        assert keyboard.wait(0.0) == ""
    monkeypatch.undo()


@pytest.mark.parametrize("stdin", [None, io.StringIO("q")])
def test_without_a_descriptor_there_are_no_keys(stdin: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", stdin)
    with Keyboard() as keyboard:
        assert keyboard.wait(0.0) == ""


def test_input_that_is_no_terminal_has_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "input").write_text("q")
    with (tmp_path / "input").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with Keyboard() as keyboard:
            assert keyboard.wait(0.0) == ""
        assert stdin.read() == "q"


class Broken:
    """A stream whose disk is full until its descriptor is replaced."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1
        if self.flushed == 1:
            raise OSError(errno.ENOSPC, "full")


def test_output_that_cannot_be_flushed_goes_nowhere_from_then_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    replaced: list[tuple[int, int]] = []
    closed: list[int] = []
    monkeypatch.setattr(os, "open", lambda path, flags: 99)
    monkeypatch.setattr(os, "dup2", lambda new, old: replaced.append((new, old)))
    monkeypatch.setattr(os, "close", closed.append)
    stream: Any = Broken()
    output = LastingOutput(stream)
    output.flush()
    output.flush()
    monkeypatch.undo()
    assert (replaced, closed) == ([(99, 1)], [99])
    assert stream.flushed == 3, "what is buffered goes nowhere too"
    assert "standard output cannot be written (full); the jobs keep running" in capsys.readouterr().err
    assert output.encoding == "utf-8"


def test_a_message_that_cannot_be_written_either_is_given_up(monkeypatch: pytest.MonkeyPatch):
    replaced: list[int] = []
    monkeypatch.setattr("paddlejob.cli.run.output.discard", replaced.append)

    class Gone:
        def write(self, text: str) -> int:
            raise OSError(errno.EPIPE, "gone")

        def flush(self) -> None:
            pass

    monkeypatch.setattr(sys, "stderr", Gone())
    stream: Any = Broken()
    LastingOutput(stream).flush()
    monkeypatch.undo()
    assert replaced == [1, 2]


def ending(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> Any:
    def broken(**_: Any) -> None:
        raise error

    monkeypatch.setattr(main_module, "app", broken)
    return pdj()


def test_a_question_that_is_not_answered_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    done = ending(typer.Abort(), monkeypatch)
    assert (done.returncode, done.stderr) == (1, "pdj: aborted; nothing was changed\n")


def test_a_reader_that_went_away_ends_the_command_as_a_shell_expects(monkeypatch: pytest.MonkeyPatch):
    replaced: list[int] = []
    monkeypatch.setattr(os, "dup2", lambda new, old: replaced.append(old))
    done = ending(BrokenPipeError(), monkeypatch)
    assert (done.returncode, done.stderr, replaced) == (141, "", [1])


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_standard_descriptors_that_are_closed_do_not_become_files(closed: tuple[int, ...], tmp_path: Path):
    program = (
        "import os, sys\n"
        "from paddlejob.cli.main import open_standard_descriptors\n"
        "open_standard_descriptors()\n"
        "print('x'); print('y', file=sys.stderr)\n"
        f"opened = os.open({str(tmp_path / 'file')!r}, os.O_CREAT | os.O_RDWR)\n"
        "os.write(opened, b'%d' % opened)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        preexec_fn=lambda: [os.close(descriptor) for descriptor in closed],
    )
    assert int((tmp_path / "file").read_text()) > 2

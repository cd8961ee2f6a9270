"""What every test can rely on, wherever the run was started from."""

from __future__ import annotations

import signal
from types import FrameType


def pytest_configure() -> None:
    """Undo an ignored SIGINT and SIGHUP, which the programs that the tests start would inherit."""
    # A job in the background of a script ignores SIGINT, and nohup ignores SIGHUP. A signal that is caught is back to
    # its default in a child, one that is ignored stays ignored. Tests also raise SIGINT in pytest's own process.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _outlive_the_terminal)


def _outlive_the_terminal(number: int, frame: FrameType | None) -> None:
    """Do nothing: the run itself goes on, as nohup asked for."""

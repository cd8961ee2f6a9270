"""What every test can rely on, wherever the run was started from."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings

from tests.support import examples

QUICK = "not full"
"""The choice of tests of a quick run, as tools/run_tests.py makes it."""
SOCKET_PATH = 107
"""The longest path of a Unix socket."""
SOCKET_NAME = len("/pymp-12345678/listener-12345678")
"""Where Python's multiprocessing, and Paddle with it, puts its sockets in TMPDIR."""


def pytest_configure(config: pytest.Config) -> None:
    examples.quick = config.option.markexpr == QUICK
    # A quick run judges a change, so it must not fail on what another run happened to miss; full runs explore.
    settings.register_profile("quick", derandomize=True)
    settings.load_profile("quick" if examples.quick else "default")
    _deliver_signals()
    stack = ExitStack()
    stack.enter_context(_short_temporary_directory())
    stack.enter_context(_no_settings_of_the_user())
    config.add_cleanup(stack.close)


def _deliver_signals() -> None:
    """Undo an ignored SIGINT and SIGHUP, which the programs that the tests start would inherit."""
    # A background job of a script ignores SIGINT, and nohup ignores SIGHUP. A child inherits an ignored signal, but
    # gets the default for one that is caught. Some tests also raise SIGINT in pytest's own process.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _keep_running)


def _keep_running(number: int, frame: FrameType | None) -> None:
    """Do nothing, so that a run under nohup outlives its terminal."""


@contextmanager
def _no_settings_of_the_user() -> Iterator[None]:
    """A remembered target or a default image would change what the tests do."""
    given = os.environ.get("XDG_CONFIG_HOME")
    with tempfile.TemporaryDirectory() as empty:
        Path(empty).chmod(0o755)
        os.environ["XDG_CONFIG_HOME"] = empty
        yield
    if given is None:
        del os.environ["XDG_CONFIG_HOME"]
    else:
        os.environ["XDG_CONFIG_HOME"] = given


@contextmanager
def _short_temporary_directory() -> Iterator[None]:
    """Reach a TMPDIR that is too long for Unix sockets through a symbolic link with a short path."""
    given = tempfile.gettempdir()
    if len(given) + SOCKET_NAME <= SOCKET_PATH:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="pdj-", dir="/tmp") as short:
        Path(short).chmod(0o711)  # for tests that run as another user
        link = Path(short, "t")
        link.symlink_to(given)
        os.environ["TMPDIR"] = tempfile.tempdir = str(link)
        yield
        os.environ["TMPDIR"] = tempfile.tempdir = given
        link.unlink()

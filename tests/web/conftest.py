from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from testbed.fixtures import *  # noqa: F403
from tests.support.operator_fixtures import *  # noqa: F403
from tests.support.pdj import Pdj
from tests.support.web import CHROMIUM, Server, page_of, serving

REBINDING = "--host-resolver-rules=MAP evil.example 127.0.0.1"
"""A name of another site that leads to this machine."""


@pytest.fixture
def pdj(tmp_path: Path) -> Iterator[Pdj]:
    """`pdj` with a state directory of its own; whatever a test does, no process may be left."""
    runner = Pdj(tmp_path)
    yield runner
    runner.close()
    assert runner.processes() == [], "processes were left behind"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; install Debian's package `chromium`")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", REBINDING])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pdj]:
    """`pdj` with a job `light` that has printed hello; a file and a variable beside it hold a secret."""
    runner = Pdj(tmp_path_factory.mktemp("ended"))
    (runner.folder / "secret").write_text("TOP-SECRET")
    runner.environment["TOKEN"] = "TOP-SECRET"
    done = runner("run", runner.write("light", command=["echo", "hello"]))
    assert done.returncode == 0, done.stderr
    yield runner
    runner.close()
    assert runner.processes() == [], "processes were left behind"


@pytest.fixture(scope="module")
def quiet_server(ended: Pdj) -> Iterator[Server]:
    """One server for tests that change nothing."""
    with serving(ended) as started:
        yield started


@pytest.fixture
def server(pdj: Pdj) -> Iterator[Server]:
    with serving(pdj) as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with page_of(browser, server) as opened:
        yield opened

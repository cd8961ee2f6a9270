"""`make picture`: writes docs/images/web-*.png, screenshots of `pdj web` while the checkpoint example trains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from paddlejob.api.types import Status
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget
from tests.support.web import CHROMIUM

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs/images"
EXAMPLES = ROOT / "examples"
PDJ = [sys.executable, "-m", "paddlejob"]
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}
WIDTH, HEIGHT = 1180, 740
STEPS = 60
"""How far the second attempt should be in the picture."""
TIMEOUT = 300
MOST_BYTES = 200_000


def main() -> None:
    if CHROMIUM is None:
        raise SystemExit("pictures of pdj web need chromium; install Debian's package `chromium`")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PADDLEJOB_STATE"] = scratch
        mnist, checkpoint = EXAMPLES / "mnist/job.yaml", EXAMPLES / "checkpoint/job.yaml"
        _pdj("run", "--env", "EPOCHS=3", str(mnist))
        _pdj("run", "--name", "mnist-full", "--env", "DATA_DIR=/data/mnist", "--no-restart", str(mnist), fails=True)
        _pdj("run", "--detach", "--env", "STEPS=2000", str(checkpoint))
        try:
            _wait_for_second_attempt("checkpoint")
            with _server(), sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                for name, locale in LANGUAGES.items():
                    _take(browser, _new_url(), name, locale)
                browser.close()
        finally:
            _pdj("delete", "checkpoint")


def _pdj(*arguments: str, fails: bool = False) -> None:
    done = subprocess.run([*PDJ, *arguments], stdout=subprocess.DEVNULL)
    if bool(done.returncode) != fails:
        raise SystemExit(f"pdj {' '.join(arguments)}: exit status {done.returncode}")


def _wait_for_second_attempt(name: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not _is_far_enough(status := SyncTarget(LocalTarget()).job("default", name).job.status):
        if status.finished or time.monotonic() > deadline:
            raise SystemExit(f"job {name} is not in its second attempt: {status.phase} {status.message}")
        time.sleep(0.2)


def _is_far_enough(status: Status) -> bool:
    progress = status.progress
    return status.attempt == 2 and progress is not None and (progress.step or 0) >= (progress.stepAtStart or 0) + STEPS


@contextmanager
def _server() -> Iterator[None]:
    process = subprocess.Popen(
        [*PDJ, "web", "--no-browser", "--port", "0", "--read-only"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        process.stdout.readline()
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _new_url() -> str:
    return subprocess.run([*PDJ, "web", "--url"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def _take(browser: Browser, url: str, name: str, locale: str) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, locale=locale)
    page = context.new_page()
    page.goto(url)
    page.locator("tr[data-job='mnist'] .spark").wait_for()
    page.locator("tr[data-job='checkpoint'] .spark").wait_for()
    _save(page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": 280}), f"web-jobs-{name}.png")
    page.locator("tr[data-job='checkpoint'] a").click()
    page.locator("[data-metric='loss'] path.curve").nth(1).wait_for()
    page.locator("[data-replica='worker-1']").get_by_text("MiB").wait_for()
    _save(page.screenshot(), f"web-job-{name}.png")
    context.close()


def _save(picture: bytes, name: str) -> None:
    if len(picture) > MOST_BYTES:
        raise SystemExit(f"{name} has {len(picture)} bytes, more than {MOST_BYTES}")
    (IMAGES / name).write_bytes(picture)
    print(f"wrote docs/images/{name}")


if __name__ == "__main__":
    main()

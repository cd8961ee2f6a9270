"""What `pdj web` costs with many jobs, in a real browser: start, first byte, size, delay of a change, search, memory.

The jobs are stored as the embedded engine stores them; the server is the command that users start.

    python -m bench.web [JOBS]
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from bench.stage import cpu_seconds
from paddlejob.local.state.store import JobFolder, JobStore
from paddlejob.logs.record import NAME, Recorder
from paddlejob.logs.series import LoggedSample
from paddlejob.progress import Sample
from tests.support.pdj import Pdj
from tests.support.web import CHROMIUM, PATIENCE, Server, serving
from tests.support.web_jobs import steps, stored

LOG_BYTES = 100_000_000
BROWSERS = 10
CHANGES = 15
KEYS = 10
SEEN = "([name, text]) => document.querySelector(`tr[data-job='${name}'] .cell-progress`)?.textContent.includes(text)"
TYPE = """async (text) => {
  const input = document.querySelector(".search"), begun = performance.now();
  input.value = text;
  input.dispatchEvent(new Event("input"));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - begun;
}"""


class Report:
    def __init__(self) -> None:
        self.failed = False

    def add(self, what: str, value: float, limit: float | None, unit: str, note: str = "") -> None:
        bad = limit is not None and value > limit
        self.failed |= bad
        bound = "" if limit is None else f"limit {limit:g} {unit}"
        print(f"  {what:<34}{value:9.1f} {unit:<4} {bound:<18}{'EXCEEDED ' if bad else ''}{note}", flush=True)


def main(jobs: int) -> int:
    if CHROMIUM is None:
        print("bench.web needs chromium; install Debian's package `chromium`")
        return 2
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        pdj = Pdj(Path(scratch))
        folders = _fill(pdj.store, jobs)
        print(f"pdj web with {jobs} jobs and a log of {LOG_BYTES / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}")
        floor = _floor()
        started = time.monotonic()
        with serving(pdj) as server:
            took = time.monotonic() - started
            report.add("start until the URL is printed", took, 1.0, "s", f"{took / floor:.1f} x importing aiohttp")
            _measure_server(server, report, started)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                _measure_page(browser, server, folders, report)
                browser.close()
    return 1 if report.failed else 0


def _fill(store: JobStore, jobs: int) -> list[JobFolder]:
    """Most have ended, as on a machine that was used for weeks; the first is being run, by a lock of this process."""
    folders = []
    for number in range(jobs):
        progress = {
            "step": 200,
            "totalSteps": 200,
            "metrics": {"loss": 0.005},
            "lastOutputTime": "2027-01-15T08:00:00Z",
        }
        status = {
            "phase": "Completed" if number % 5 else "Failed",
            "message": "pod job-worker-0 of job failed with exit status 1; its output ends with: out of data",
            "attempt": 1, "startTime": "2027-01-15T08:00:00Z", "completionTime": "2027-01-15T09:00:00Z",
            "progress": progress,
        }  # fmt: skip
        folders.append(stored(store, f"job-{number:03}", logs={"1/worker-0": steps(200)}, **status))
        if number:
            Recorder(folders[-1].path, f"job-{number:03}", None)
    active = folders[0]
    assert active.runner_lock().acquire()
    _advance(active, 1)
    line = "2027-01-15 08:00:00 INFO epoch 3 step {:09} loss=0.123456 lr=0.001 samples/s=812.4 memory=1234 MiB\n"
    count = LOG_BYTES // len(line.format(0))
    (active.path / NAME).touch()
    recorder = Recorder(active.path, "job-000", None)
    with active.log(1, "job-000-worker-0").open("w") as file:
        for first in range(0, count, 10_000):
            written = range(first, min(first + 10_000, count))
            file.write("".join(line.format(step) for step in written))
            recorder.append(LoggedSample(1, 0.0, Sample(step=step, metrics={"loss": 0.123456})) for step in written)
    return folders


def _advance(folder: JobFolder, step: int) -> None:
    job = folder.job()
    assert job
    progress = {"step": step, "totalSteps": 9999, "metrics": {"loss": 1 / step}}
    status = {"phase": "Running", "attempt": 1, "startTime": "2027-01-15T08:00:00Z", "progress": progress}
    folder.write_status(type(job.status).model_validate(status))


def _floor() -> float:
    """Seconds that Python needs to import the library of the server, which nothing of ours can shorten."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "from aiohttp import web"], check=True)
    return time.monotonic() - began


def _measure_server(server: Server, report: Report, started: float) -> None:
    session = server.session
    took = _request(server, session)
    report.add("start until the first job list", time.monotonic() - started, None, "s")
    report.add("the first job list of all", took * 1000, None, "ms")
    times = [_request(server, session) for _ in range(20)]
    report.add(
        "first byte of the job list", statistics.median(times) * 1000, 100, "ms", f"worst {max(times) * 1000:.0f} ms"
    )
    base = "/api/jobs/local/default/job-000/logs/search?q="
    for what, pattern in (
        ("a rare line", "step 000987654 "),
        ("nothing", "traceback"),
        ("a pattern", r"loss=[1-9]\d*\."),
    ):
        times = [_request(server, session, base + quote(pattern)) for _ in range(3)]
        report.add(f"search in 100 MB for {what}", statistics.median(times), 1.0, "s", f"worst {max(times):.2f} s")


def _request(server: Server, session: str, path: str = "/api/jobs") -> float:
    """Seconds until the whole answer is there."""
    began = time.monotonic()
    status, _, _ = server.request("GET", path, Authorization=session, Accept_Encoding="gzip")
    assert status == 200, status
    return time.monotonic() - began


def _measure_page(browser: Browser, server: Server, folders: list[JobFolder], report: Report) -> None:
    page, bytes_, foreign = _open(browser, server)
    rows = page.locator("tr[data-job]")
    began = time.monotonic()
    rows.nth(len(folders) - 1).wait_for(state="attached")
    report.add("page, its scripts and the job list", bytes_(), 150, "KB", "as sent")
    report.add("requests to other hosts", foreign(), 0, "")
    report.add("until all rows are there", (time.monotonic() - began) * 1000, None, "ms", "after the page had loaded")
    keys = [page.evaluate(TYPE, f"job-{number}" if number % 2 else "") for number in range(KEYS)]
    report.add("typing in the filter, until drawn", statistics.median(keys), 100, "ms", f"worst {max(keys):.0f} ms")
    delays = [_visible(page, folders[0], step) for step in range(2, 2 + CHANGES)]
    report.add("a change until it is visible", max(delays), 1.0, "s", f"median {statistics.median(delays):.2f} s")
    others = [_open(browser, server, path)[0] for path in _paths()]
    for one in others:
        one.locator("main :is(tr, .line, h1, h2):visible").first.wait_for()
    _visible(page, folders[0], 1000)
    report.add(f"memory with {len(others) + 1} pages open", _rss(server), 120, "MiB")
    time.sleep(60)
    report.add("the same a minute later", _rss(server), 120, "MiB")
    used, begun = cpu_seconds(server.process.pid), time.monotonic()
    time.sleep(20)
    share = (cpu_seconds(server.process.pid) - used) / (time.monotonic() - begun)
    report.add("CPU with these pages", share * 100, None, "%")


def _paths() -> list[str]:
    job = "#/job/local/default/job-000"
    return ["", "", "", f"{job}", f"{job}", f"{job}/logs", f"{job}/logs", "#/job/local/default/job-001", "#/machine"][
        : BROWSERS - 1
    ]


def _open(browser: Browser, server: Server, path: str = "") -> tuple[Page, Callable[[], float], Callable[[], int]]:
    """A page in a context of its own, how many kilobytes it has received, and its requests to other hosts."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    sizes: list[float] = []
    hosts: list[str] = []
    session: Any = context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.on("request", lambda request: hosts.append(urlsplit(request.url).netloc))
    page.goto(server.link())
    if path:
        page.locator("tr[data-job]").first.wait_for()
        page.goto(f"http://127.0.0.1:{server.port}/{path}")
        page.reload()
    own = f"127.0.0.1:{server.port}"
    return page, lambda: sum(sizes) / 1000, lambda: sum(host != own for host in hosts)


def _visible(page: Page, folder: JobFolder, step: int) -> float:
    """Seconds from the write of a status until the list shows it."""
    began = time.monotonic()
    _advance(folder, step)
    page.wait_for_function(SEEN, arg=[folder.key[1], f"{step}/9999"], polling="raf")
    return time.monotonic() - began


def _rss(server: Server) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 500))

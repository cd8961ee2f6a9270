"""The live screen: charts, replicas, the end of a log, events, and what is printed where there is no terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from paddlejob.cli.run.charts import bar, sparkline
from paddlejob.cli.run.live import LiveScreen, render
from paddlejob.cli.run.news import News
from paddlejob.cli.run.observation import Observation
from paddlejob.cli.run.plain import PlainScreen
from paddlejob.cli.run.watch import open_screen
from paddlejob.targets.log_views import LastLines
from paddlejob.targets.views import EventView, JobView, PodView, Usage
from tests.support.job_views import view


def test_charts_fill_their_width():
    assert bar(0.5, 4) == ("━━", "━━")
    assert bar(0.375, 4) == ("━╸", "━━")
    assert (bar(-1, 2), bar(9, 2)) == (("", "━━"), ("━━", ""))
    assert sparkline([0.0, 7.0], 9) == "▁█"
    assert sparkline([0, 0, 4, 4, 7, 7], 3) == "▁▅█"
    assert sparkline([1.0, 2.0, 3.0], 2) == "▁█"
    assert sparkline([-1.7e308, 1.7e308, 1.7e308], 2) == "▁█" == sparkline([5e-324, 1e-308], 2)
    assert sparkline([1.0, 1.0], 2) == "▁▁"


def drawn(*views: JobView, seen: Observation | None = None, height: int = 24) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    for one in views:
        console.print(render(one, seen or Observation(), height))
    return console.export_text()


def test_the_live_view_shows_replicas_that_do_not_run_first_and_counts_the_rest():
    pods = [PodView(f"w{index}", "worker", index, "Running") for index in range(30)]
    pods[27] = PodView("w27", "worker", 27, "Failed", exit_code=3)
    text = drawn(view(pods=pods, restarts=1, message="fine"), height=12)
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("worker-")]
    assert shown[-1] == "worker-27" and shown[0] == "worker-0"
    assert f"and {30 - len(shown)} more" in text
    assert ", 1 restart" in text.splitlines()[0] and text.splitlines()[1] == "fine"


def test_the_live_view_shows_the_end_of_a_log_and_one_loss_is_no_course():
    text = drawn(view(), seen=Observation(LastLines("worker-1", ("one", "two")), (1.0,)))
    assert "log of worker-1:\n  one\n  two" in text
    assert "loss" not in text
    assert "loss ▁█ 1 → 2" in drawn(view(), seen=Observation(losses=(1.0, 2.0)))


def test_the_use_of_replicas_has_columns_where_it_is_known():
    pods = [PodView("a", "worker", 0, "Running"), PodView("b", "worker", 1, "Running")]
    text = drawn(view(pods=pods), seen=Observation(usage={"a": Usage(1.25, 3 << 20), "b": Usage(None, None)}))
    assert [line.split() for line in text.splitlines() if line.startswith(("REPLICA", "worker"))] == [
        ["REPLICA", "STATE", "CPU", "MEMORY", "ADDRESS", "EXIT"],
        ["worker-0", "Running", "1.2", "3.0Mi"],
        ["worker-1", "Running"],
    ]
    gpus = drawn(view(pods=pods), seen=Observation(usage={"a": Usage(gpu=40.0, gpu_memory=2 << 30)}))
    assert "GPU MEMORY" in gpus and "40%" in gpus and "2.0Gi" in gpus
    assert "CPU" not in drawn(view(pods=pods))


def observe(seen: JobView, lines: int) -> Observation:
    return Observation(LastLines("worker-0", (f"{lines} lines",)))


def test_a_live_screen_prints_events_says_messages_and_shows_its_footer():
    console = Console(width=80, height=20, file=io.StringIO(), force_terminal=True)
    screen = LiveScreen(observe, "press q", console)
    seen = view()
    seen.events.append(EventView("t", "Restarted", "again\nmore"))
    screen.show([seen])
    screen.say("hello")
    screen.close()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "mnist: Restarted: again" in text and "more" not in text
    assert "press q" in text and "hello" in text and "19 lines" in text


def test_a_screen_is_live_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    assert isinstance(open_screen(observe), PlainScreen)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_screen(observe), PlainScreen)


def test_news_are_events_that_neither_a_screen_nor_the_status_showed():
    news = News()
    seen = view(message="worker 1 failed")
    seen.events.extend(EventView("t", "Old", f"event {number}") for number in range(5))
    assert news.of(seen) == ["Old: event 2", "Old: event 3", "Old: event 4"]
    assert news.of(seen) == []
    seen.events.append(EventView("t", "Failed", "worker 1 failed\noutput"))
    seen.events.append(EventView("t", "Restarted", "again"))
    assert news.of(seen) == ["Restarted: again"]


def test_lines_for_pipes_tell_each_change_once(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    screen = PlainScreen()
    (tmp_path / "log").write_text("hello\nworld\n")
    pods = [
        PodView("s", "ps", 0, "Running", log="/none"),
        PodView("w", "worker", 0, "Running", log=str(tmp_path / "log")),
    ]
    seen = view(pods=pods, message="fine")
    screen.show([seen])
    screen.show([seen])
    screen.say("stop")
    screen.close()
    lines = [line.partition("s ")[2] or line for line in capsys.readouterr().out.splitlines()]
    assert lines == ["mnist: Running: fine", "mnist worker-0: world", "stop"]


@pytest.mark.parametrize(
    ("phase", "colour"),
    [
        ("Running", "32"), ("Completed", "1;32"), ("Failed", "1;31"), ("Interrupted", "1;31"), ("Restarting", "33"),
        ("Suspended", "33"), ("Pending", "36"),
    ],
)  # fmt: skip
def test_each_phase_has_its_colour(phase: str, colour: str):
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False)
    seen = view("Running" if phase == "Interrupted" else phase)
    console.print(render(JobView(seen.job, {}, phase), Observation()))
    assert f"\x1b[{colour}m{phase}\x1b[0m" in console.file.getvalue()  # type: ignore[attr-defined]


def test_succeeded_replicas_are_green_and_pending_ones_cyan():
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system="standard", no_color=False)
    pods = [PodView("a", "worker", 0, "Succeeded"), PodView("b", "worker", 1, "Pending")]
    console.print(render(view(pods=pods), Observation()))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1;32mSucceeded" in text and "\x1b[36mPending" in text


def test_jobs_share_the_height_of_the_terminal_and_are_drawn_at_most_twice_a_second(
    monkeypatch: pytest.MonkeyPatch,
):
    now = [100.0]
    monkeypatch.setattr("paddlejob.cli.run.live.time", SimpleNamespace(monotonic=lambda: now[0]))
    asked: list[int] = []

    def counting(seen: JobView, lines: int) -> Observation:
        asked.append(lines)
        return observe(seen, lines)

    console = Console(width=80, height=21, file=io.StringIO(), force_terminal=True)
    screen = LiveScreen(counting, "press q", console)
    screen.show([view(), view()])
    assert asked == [10, 10]
    now[0] += 0.4
    screen.show([view()])
    assert asked == [10, 10]
    now[0] += 0.1
    screen.show([view()])
    assert asked == [10, 10, 20]
    screen.show([])
    screen.close()
    plain = LiveScreen(counting, "", console)
    plain.show([view()])
    plain.close()
    assert asked[-1] == 21, "without a footer all of it"


def test_a_chart_leaves_space_for_its_numbers_and_is_never_shorter_than_ten_columns():
    def bar_width(width: int) -> int:
        console = Console(width=width, file=io.StringIO(), record=True)
        made = view(progress={"step": 1, "totalSteps": 4})
        console.print(render(made, Observation(), 24, width))
        (line,) = [one for one in console.export_text().splitlines() if "%" in one and "━" in one]
        return line.count("━") + line.count("╸")

    assert [bar_width(width) for width in (200, 68, 60, 31, 25)] == [48, 48, 40, 11, 10]


def test_a_terminal_has_the_live_screen_with_its_footer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = open_screen(observe, "press q")
    screen.close()
    assert isinstance(screen, LiveScreen)
    monkeypatch.setenv("TERM", "unknown")
    assert isinstance(open_screen(observe), PlainScreen)


def test_without_progress_the_first_worker_with_a_log_is_quoted_now_and_then(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = [100.0]
    monkeypatch.setattr("paddlejob.cli.run.plain.time", SimpleNamespace(monotonic=lambda: now[0]))
    log = tmp_path / "log"
    log.write_text("one\n")
    pods = [PodView("a", "worker", 0, "Running"), PodView("b", "worker", 1, "Running", log=str(log))]
    screen = PlainScreen()
    now[0] += 3.25
    screen.show([view(pods=pods)])
    log.write_text("two\n")
    now[0] += 1.9
    screen.show([view(pods=pods)])
    now[0] += 0.1
    screen.show([view(pods=pods)])
    assert capsys.readouterr().out.splitlines() == [
        "   3.2s mnist: Running", "   3.2s mnist worker-1: one", "   5.2s mnist worker-1: two",
    ]  # fmt: skip


def test_the_course_of_the_loss_is_as_long_as_a_bar_with_its_label():
    text = drawn(view(), seen=Observation(losses=tuple(float(number) for number in range(200))))
    (line,) = [one for one in text.splitlines() if one.startswith("loss ")]
    assert len(line.split()[1]) + len("loss ") == 48
    assert line.endswith(" 0 → 199")

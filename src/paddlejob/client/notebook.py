"""A job as a notebook shows it: its state, its replicas, and a curve of the loss."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from paddlejob.errors import PaddleJobError
from paddlejob.logs.series import thinned

if TYPE_CHECKING:
    from paddlejob.client.handle import Run

WIDTH, HEIGHT = 320, 60
MOST_POINTS = 200
INTERVAL = 2.0


def page(run: Run) -> str:
    """HTML without scripts, so that it also shows in a saved notebook."""
    try:
        view = run.view()
    except PaddleJobError as error:
        return f"<pre>{escape(str(error))}</pre>"
    rows = "".join(
        f"<tr><td>{escape(pod.replica)}</td><td>{escape(pod.state)}</td><td>{escape(pod.exit_text)}</td></tr>"
        for pod in view.pods
    )
    return (
        f"<div><b>{escape(run.name)}</b>: {escape(view.phase)} <small>{escape(view.headline)}</small>"
        f"<table><tr><th>replica</th><th>state</th><th>exit status</th></tr>{rows}</table>{_loss(run)}</div>"
    )


def live_page(run: Run) -> Callable[[bool], None]:
    """Shows the page of the job in a notebook; what is returned updates it, at once or every few seconds."""
    ipython = sys.modules.get("IPython")
    if ipython is None or ipython.get_ipython() is None:
        return lambda at_once: None
    output: Any = import_module("IPython.display")
    shown = output.display(output.HTML(page(run)), display_id=True)
    drawn = time.monotonic()

    def show(at_once: bool) -> None:
        nonlocal drawn
        if at_once or time.monotonic() - drawn >= INTERVAL:
            drawn = time.monotonic()
            shown.update(output.HTML(page(run)))

    return show


def _loss(run: Run) -> str:
    try:
        series = run.target.series(run.namespace, run.name)
    except PaddleJobError:
        return ""
    curves = series.metrics.get("loss", [])
    points = [point for one in curves for point in zip(one.steps, one.values, strict=True)]
    if len(points) < 2:
        return ""
    return f"<div>loss {points[0][1]:.4g} → {points[-1][1]:.4g}, {series.axis} {points[-1][0]}</div>{curve(points)}"


def curve(points: list[tuple[float, float]]) -> str:
    """A line as SVG; the horizontal axis is the step."""
    points = [points[index] for index in thinned([value for _, value in points], MOST_POINTS)]
    steps, values = [step for step, _ in points], [value for _, value in points]
    left, low = min(steps), min(values)
    across, down = (max(steps) - left) or 1, (max(values) - low) or 1
    line = " ".join(
        f"{(step - left) / across * WIDTH:.1f},{HEIGHT - (value - low) / down * HEIGHT:.1f}" for step, value in points
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT + 4}" viewBox="0 -2 {WIDTH} {HEIGHT + 4}" role="img" '
        f'aria-label="loss by step"><polyline fill="none" stroke="#1f77b4" stroke-width="1.5" points="{line}"/></svg>'
    )

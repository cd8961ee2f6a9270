"""A line below a plot that says when and where its figures were measured."""

from __future__ import annotations

from bench.figures import Measured
from tools.docs.pictures.svg import GREY, Svg


def draw_origin(svg: Svg, shown: list[Measured], language: int, rest: str = "") -> None:
    """`rest` is added for figures from elsewhere."""
    dates = sorted({one.date for one in shown})
    machines = sorted({one.machine for one in shown})
    when = dates[0] if len(dates) == 1 else (f"{dates[0]} to {dates[-1]}", f"{dates[0]} 至 {dates[-1]}")[language]
    text = ("Measured {} on {}", "测量于 {}，{}")[language].format(when, "; ".join(machines))
    text = text if language == 0 else text.replace("CPUs", "CPU")
    svg.text(24, svg.height - 14, text + rest, "start", 11, GREY)

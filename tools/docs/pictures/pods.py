"""Seconds until all pods of jobs are created, from bench/figures.json."""

from __future__ import annotations

from bench.figures import read
from tools.docs.pictures.origin import draw_origin
from tools.docs.pictures.svg import BLUE, GREY, PALE, Svg

PUBLISHED = {
    "1x1000": {"Kubeflow training-operator": 49.0, "paddle-operator 0.3.5": 149.0},
    "500x4": {"Kubeflow training-operator": 198.0, "paddle-operator 0.3.5": 199.0},
}
"""Measured on a similar machine, in other runs: docs/decisions/0006-what-scale-costs.md."""
CASES = {
    "1x1000": ("1 job with 1000 workers", "1 个任务，1000 个 worker"),
    "500x4": ("500 jobs with 4 workers", "500 个任务，各 4 个 worker"),
}
LEFT, WIDTH, BAR = 220, 460, 20


def draw(language: int) -> str:
    measured = read("operator")
    svg = Svg(760, 356, ("Seconds until all pods are created", "创建全部 Pod 所需的秒数")[language])
    svg.text(
        24, 34, ("Seconds until all pods are created", "创建全部 Pod 所需的秒数")[language], "start", 14, bold=True
    )
    y = 62.0
    for case, title in CASES.items():
        svg.text(24, y + 10, title[language], "start", 13, bold=True)
        bars = {
            ("lower bound: no operator", "下限：不使用 operator")[language]: measured[case].values["floor"],
            "paddlejob": measured[case].values["created"],
            **PUBLISHED[case],
        }
        y += 22
        for name, seconds in bars.items():
            length = max(2.0, WIDTH * seconds / 200)
            svg.text(LEFT - 10, y + 15, name, "end", 12)
            svg.box(
                LEFT, y, length, BAR, BLUE if name == "paddlejob" else PALE, BLUE if name == "paddlejob" else GREY, 2
            )
            svg.text(LEFT + length + 8, y + 15, f"{seconds:.1f}" if seconds < 20 else f"{seconds:.0f}", "start", 12)
            y += BAR + 6
        y += 14
    rest = ("; operators written in Go: see decision 6", "；用 Go 编写的 operator 见决策 6")[language]
    draw_origin(svg, [measured[case] for case in CASES], language, rest)
    return svg.render()

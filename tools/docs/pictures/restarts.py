"""Steps of a job over time, with a failure, a failure without progress and a lost node."""

from __future__ import annotations

from tools.docs.pictures.svg import AMBER, BLUE, GREEN, GREY, PALE, RED, Svg

LEFT, RIGHT, TOP, BOTTOM = 70, 735, 60, 290
SECONDS, STEPS = 700, 1000
SAVE_EVERY = 100
Point = tuple[float, float]
ATTEMPTS: tuple[tuple[Point, Point], ...] = (
    ((20, 0), (150, 390)),
    ((162, 300), (190, 384)),
    ((210, 300), (330, 660)),
    ((392, 600), (525, 1000)),
)
"""The first and the last second and step of each attempt."""


def draw(language: int) -> str:
    svg = Svg(760, 340, ("Restarts over time", "一个任务随时间的重启")[language])
    svg.text(LEFT - 40, 32, ("step", "步数")[language], "start", 13, bold=True)
    for step in range(0, STEPS + 1, 200):
        y = _at((0, step))[1]
        svg.path([(LEFT, y), (RIGHT, y)], PALE, 1)
        svg.text(LEFT - 8, y + 4, str(step), "end", 11, GREY)
    svg.arrow([(LEFT, BOTTOM), (RIGHT, BOTTOM)])
    svg.text(RIGHT, BOTTOM + 20, ("time", "时间")[language], "end", 12, GREY)
    for number, (start, end) in enumerate(ATTEMPTS):
        svg.path([_at(start), _at(end)], BLUE, 2.5)
        x = _at(start)[0]
        row = BOTTOM + (18 if number % 2 == 0 else 32)  # two short attempts are next to each other
        svg.text(x + 2, row, (f"attempt {number + 1}", f"第 {number + 1} 次尝试")[language], "start", 11, GREY)
        for step in range(SAVE_EVERY, STEPS + 1, SAVE_EVERY):
            if start[1] < step <= end[1]:
                x, y = _at(_on(start, end, step))
                svg.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="{GREEN}"/>')
    _note(
        svg,
        (150, 390),
        (-6, -14),
        ("fails after progress:", "有进展后失败："),
        ("restarts at once", "立即重启"),
        RED,
        language,
    )
    _note(
        svg,
        (190, 384),
        (14, 62),
        ("fails at the same step:", "在同一步失败："),
        ("no progress, waits 2 s", "没有进展，等待 2 秒"),
        AMBER,
        language,
    )
    _note(svg, (330, 660), (-6, -14), ("node is lost:", "节点丢失："), ("not counted", "不计数"), RED, language)
    _note(svg, (525, 1000), (10, 8), ("Completed", "完成"), ("", ""), GREEN, language)
    svg.parts.append(f'<circle cx="{RIGHT - 150}" cy="28" r="3.5" fill="{GREEN}"/>')
    svg.text(RIGHT - 140, 32, ("checkpoint", "检查点")[language], "start", 12)
    return svg.render()


def _at(point: Point) -> Point:
    second, step = point
    return LEFT + (RIGHT - LEFT) * second / SECONDS, BOTTOM - (BOTTOM - TOP) * step / STEPS


def _on(start: Point, end: Point, step: float) -> Point:
    """The point of an attempt at a step."""
    return start[0] + (end[0] - start[0]) * (step - start[1]) / (end[1] - start[1]), step


def _note(
    svg: Svg, point: Point, offset: Point, first: tuple[str, str], second: tuple[str, str], color: str, language: int
) -> None:
    x, y = _at(point)
    if color != GREEN:
        svg.path([(x - 5, y - 5), (x + 5, y + 5)], color, 2.5)
        svg.path([(x - 5, y + 5), (x + 5, y - 5)], color, 2.5)
    anchor = "end" if offset[0] < 0 else "start"
    svg.text(x + offset[0], y + offset[1] - 14, first[language], anchor, 12, color)
    svg.text(x + offset[0], y + offset[1] + 1, second[language], anchor, 12, color)

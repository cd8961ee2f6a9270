"""How many steps a training keeps under faults, from bench/figures.json."""

from __future__ import annotations

from bench.figures import read
from tools.docs.pictures.origin import draw_origin
from tools.docs.pictures.svg import BLUE, GREY, GREY_FILL, PALE, Svg

CASES = {
    "embedded collective": ("pdj run, collective", "pdj run，集合通信"),
    "embedded ps": ("pdj run, parameter servers", "pdj run，参数服务器"),
    "cluster collective": ("cluster, collective", "集群，集合通信"),
}
TITLE = ("Steps kept with a fault a minute, in percent", "每分钟一次故障时保留的训练步数（%）")
LEFT, WIDTH, BAR, ROW = 215, 450, 24, 40


def draw(language: int) -> str:
    measured = read("goodput")
    cases = {case: name for case, name in CASES.items() if case in measured}
    svg = Svg(760, 96 + ROW * len(cases), TITLE[language])
    svg.text(24, 34, TITLE[language], "start", 14, bold=True)
    for number, (case, name) in enumerate(cases.items()):
        y, values = 54 + ROW * number, measured[case].values
        svg.text(LEFT - 12, y + 17, name[language], "end", 13)
        svg.box(LEFT, y, WIDTH, BAR, GREY_FILL, PALE, 2)
        svg.box(LEFT, y, WIDTH * values["kept"] / 100, BAR, BLUE, BLUE, 2)
        svg.text(LEFT + 10, y + 17, f"{values['kept']:.1f}", "start", 13, "#ffffff", bold=True)
        goal = LEFT + WIDTH * values["goal"] / 100
        svg.path([(goal, y - 3), (goal, y + BAR + 3)], GREY, 2)
        svg.text(
            LEFT + WIDTH + 10, y + 17, (f"goal {values['goal']:g}", f"目标 {values['goal']:g}")[language], "start", 12
        )
    draw_origin(svg, [measured[case] for case in cases], language)
    return svg.render()

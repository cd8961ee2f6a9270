"""Where the time of a recovery goes, from bench/figures.json."""

from __future__ import annotations

from bench.figures import read
from tools.docs.pictures.origin import draw_origin
from tools.docs.pictures.svg import AMBER, BLUE, GREEN, GREY, PALE, RED, Svg, width_of

PARTS = {
    "noticed": (("noticed", "发现故障"), RED),
    "old pods end": (("old pods end", "旧 Pod 结束"), AMBER),
    "start barrier": (("new pods, start barrier", "新 Pod、启动屏障"), BLUE),
    "programs start": (("programs start", "程序启动"), GREY),
    "program is back": (("import, rendezvous, checkpoint", "导入、建立通信、加载检查点"), GREEN),
}
KINDS = {
    "kill": ("worker killed", "worker 被终止"),
    "delete": ("pod deleted", "Pod 被删除"),
    "node": ("node lost", "节点丢失"),
}
LEFT, WIDTH, BAR = 130, 590, 30


def draw(language: int) -> str:
    measured = {kind: found.values for kind, found in read("recovery").items()}
    title = ("Where the time of a recovery goes, in seconds", "一次恢复的时间花在哪里（秒）")[language]
    svg = Svg(760, 262, title)
    svg.text(24, 34, title, "start", 14, bold=True)
    x = 24.0
    for text, color in PARTS.values():
        svg.box(x, 50, 12, 12, color, color, 2)
        svg.text(x + 17, 61, text[language], "start", 12)
        x += 28 + width_of(text[language])
    longest = max(sum(measured[kind].values()) for kind in KINDS)
    for number, (kind, name) in enumerate(KINDS.items()):
        y = 84 + number * (BAR + 18)
        svg.text(LEFT - 12, y + 20, name[language], "end", 13)
        x = LEFT
        for part, (_, color) in PARTS.items():
            length = WIDTH * 0.93 * measured[kind][part] / longest
            svg.box(x, y, length, BAR, color, "#ffffff", 2)
            if length > 26:
                svg.text(x + length / 2, y + 20, f"{measured[kind][part]:.1f}", "middle", 12, "#ffffff")
            x += length
        svg.text(x + 8, y + 20, f"{sum(measured[kind].values()):.1f}", "start", 13, bold=True)
    svg.path([(LEFT, 78), (LEFT, 228)], PALE, 1)
    draw_origin(svg, [read("recovery")[kind] for kind in KINDS], language)
    return svg.render()

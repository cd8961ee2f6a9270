"""The start barrier: pods become ready at different times, and their programs start together."""

from __future__ import annotations

from tools.docs.pictures.svg import (
    AMBER,
    AMBER_FILL,
    BLUE,
    BLUE_FILL,
    GREEN,
    GREEN_FILL,
    GREY,
    GREY_FILL,
    PALE,
    RED,
    Svg,
    width_of,
)

PODS = (("ps-0", 90, 70), ("ps-1", 120, 150), ("worker-0", 70, 110), ("worker-1", 200, 145))
"""Each pod with the length of its scheduling and of pulling its image."""
LEFT, OPEN, END, TOP, LANE = 110, 490, 730, 70, 42


def draw(language: int) -> str:
    svg = Svg(760, 320, ("The start barrier", "启动屏障")[language])
    kinds = (
        (("schedule", "调度"), GREY_FILL, PALE),
        (("pull image, mount volumes", "拉取镜像、挂载卷"), BLUE_FILL, BLUE),
        (("wait for the ConfigMap", "等待 ConfigMap"), AMBER_FILL, AMBER),
        (("train", "训练"), GREEN_FILL, GREEN),
    )
    x = float(LEFT)
    for text, fill, stroke in kinds:
        svg.box(x, 22, 16, 16, fill, stroke, 3)
        svg.text(x + 22, 35, text[language], "start", 12)
        x += 46 + width_of(text[language])
    for number, (name, scheduling, pulling) in enumerate(PODS):
        y = TOP + number * LANE
        svg.text(LEFT - 12, y + 19, name, "end", 13)
        ready = LEFT + scheduling + pulling
        svg.box(LEFT, y, scheduling, 28, GREY_FILL, PALE, 3)
        svg.box(LEFT + scheduling, y, pulling, 28, BLUE_FILL, BLUE, 3)
        svg.box(ready, y, OPEN - ready, 28, AMBER_FILL, AMBER, 3)
        svg.box(OPEN, y, END - OPEN, 28, GREEN_FILL, GREEN, 3)
    bottom = TOP + len(PODS) * LANE
    svg.path([(OPEN, TOP - 14), (OPEN, bottom + 6)], RED, 2, dashed=True)
    text = ("every pod has an address: the ConfigMap is created", "所有 Pod 都有地址：创建 ConfigMap")
    svg.text(OPEN, bottom + 24, text[language], "middle", 12, RED)
    svg.arrow([(LEFT, bottom + 50), (END, bottom + 50)])
    svg.text(END, bottom + 68, ("time", "时间")[language], "end", 12, GREY)
    return svg.render()

"""The phases of a job."""

from __future__ import annotations

from tools.docs.pictures.svg import BLUE, BLUE_FILL, GREEN, GREEN_FILL, RED, RED_FILL, Svg

ROW, WIDTH, HEIGHT = 40, 118, 48


def draw(language: int) -> str:
    svg = Svg(760, 270, ("The phases of a job", "任务的各个阶段")[language])
    for x, name, fill, stroke in (
        (30, "Pending", BLUE_FILL, BLUE),
        (222, "Starting", BLUE_FILL, BLUE),
        (414, "Running", BLUE_FILL, BLUE),
        (612, "Completed", GREEN_FILL, GREEN),
    ):
        svg.labelled(x, ROW, WIDTH, HEIGHT, [name], fill, stroke)
    svg.labelled(318, 190, WIDTH, HEIGHT, ["Restarting"])
    svg.labelled(30, 190, WIDTH, HEIGHT, ["Suspended"])
    svg.labelled(612, 190, WIDTH, HEIGHT, ["Failed"], RED_FILL, RED)
    middle = ROW + HEIGHT / 2
    for x, end, text in (
        (148, 218, ("barrier", "屏障打开")),
        (340, 410, ("all run", "全部运行")),
        (532, 608, ("all exit 0", "全部成功")),
    ):
        svg.arrow([(x, middle), (end, middle)])
        svg.text((x + end) / 2, middle - 8, text[language], "middle", 12)
    svg.arrow([(455, ROW + HEIGHT), (455, 214), (440, 214)])
    svg.text(462, 165, ("failure, disruption, hang", "失败、外部中断、卡住")[language], "start", 12)
    svg.arrow([(314, 196), (200, 196), (200, 134), (125, 134), (125, ROW + HEIGHT + 4)])
    svg.text(257, 188, ("next attempt", "下一次尝试")[language], "middle", 12)
    svg.arrow([(436, 228), (608, 228)])
    svg.text(522, 246, "backoffLimit", "middle", 12)
    svg.arrow([(62, ROW + HEIGHT), (62, 186)], both=True)
    svg.text(70, 168, ("suspend, resume", "暂停、恢复")[language], "start", 12)
    return svg.render()

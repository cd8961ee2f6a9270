"""One planner and two engines."""

from __future__ import annotations

from tools.docs.pictures.svg import AMBER, AMBER_FILL, BLUE, BLUE_FILL, GREEN, GREEN_FILL, Svg


def draw(language: int) -> str:
    svg = Svg(760, 330, ("One planner, two engines", "一个规划器，两个引擎")[language])
    svg.labelled(24, 135, 110, 60, ["job.yaml", ("PaddleJob", "PaddleJob")[language]], AMBER_FILL, AMBER)
    operator = (["operator", "informers, leader election"], ["operator", "informer、选主"])[language]
    embedded = (["pdj run", "the embedded engine"], ["pdj run", "内嵌引擎"])[language]
    planner = (
        ["planner", "plan(job, world, now)", "pure: no I/O, no clock"],
        ["规划器", "plan(job, world, now)", "纯函数：无 I/O、无时钟"],
    )[language]
    svg.labelled(200, 30, 190, 60, operator, BLUE_FILL, BLUE)
    svg.labelled(200, 240, 190, 60, embedded, BLUE_FILL, BLUE)
    svg.labelled(200, 128, 190, 74, planner, GREEN_FILL, GREEN)
    cluster = (
        ["Kubernetes", "API server, kubelets", "pods on many nodes"],
        ["Kubernetes", "API server、kubelet", "多个节点上的 Pod"],
    )[language]
    machine = (
        ["this machine", "scheduler, supervisor", "processes with own addresses"],
        ["本机", "调度器、supervisor", "各有地址的进程"],
    )[language]
    svg.labelled(540, 18, 196, 84, cluster)
    svg.labelled(540, 228, 196, 84, machine)
    svg.arrow([(79, 135), (79, 60), (196, 60)])
    svg.arrow([(79, 195), (79, 270), (196, 270)])
    svg.text(74, 52, "kubectl apply", "middle", 12)
    svg.text(74, 288, "pdj run", "middle", 12)
    for start, end in ((90, 128), (240, 202)):
        svg.arrow([(265, start), (265, end)])
        svg.arrow([(325, end), (325, start)])
        middle = (start + end) / 2 + 4
        svg.text(258, middle, ("job, pods", "任务、Pod")[language], "end", 12)
        svg.text(332, middle, ("status, actions", "状态、动作")[language], "start", 12)
    for y in (60, 270):
        svg.arrow([(392, y), (536, y)], both=True)
        svg.text(465, y - 9, ("observe, perform", "观察、执行")[language], "middle", 12)
    return svg.render()

"""Shapes of an SVG picture on a light card, which is readable in a light and in a dark theme."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

FONT = "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
INK, GREY, PALE = "#24292f", "#6b7280", "#d0d7de"
BLUE, GREEN, AMBER, RED = "#3b6fd4", "#2f9e5b", "#c98a1b", "#d1453b"
BLUE_FILL, GREEN_FILL, AMBER_FILL, RED_FILL, GREY_FILL = "#e3ecfb", "#dff3e6", "#fbf0d9", "#fbe3e1", "#f3f4f6"
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse">'
    f'<path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker>'
)


def width_of(text: str, size: int = 12) -> float:
    """About how wide a text is: a Chinese character is as wide as the font is high, a Latin one half as wide."""
    return sum(size if ord(letter) > 0x2E7F else 0.55 * size for letter in text)


@dataclass
class Svg:
    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = GREY_FILL,
        stroke: str = PALE,
        round_: int = 6,
    ) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_}" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "middle",
        size: int = 14,
        color: str = INK,
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{color}"{weight}>'
            f"{escape(text)}</text>"
        )

    def labelled(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: list[str],
        fill: str = GREY_FILL,
        stroke: str = PALE,
    ) -> None:
        """A box with a bold first line and smaller ones below it, centred."""
        self.box(x, y, width, height, fill, stroke)
        top = y + height / 2 - (len(lines) - 1) * 9 + 5
        for number, line in enumerate(lines):
            first = number == 0
            self.text(
                x + width / 2,
                top + number * 18,
                line,
                size=14 if first else 12,
                color=INK if first else GREY,
                bold=first,
            )

    def path(
        self, points: list[tuple[float, float]], color: str = GREY, width: float = 1.5, dashed: bool = False
    ) -> None:
        route = " ".join(f"{x:g},{y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline points="{route}" fill="none" stroke="{color}" stroke-width="{width:g}" '
            f'stroke-linejoin="round"{dash}/>'
        )

    def arrow(self, points: list[tuple[float, float]], both: bool = False) -> None:
        self.path(points)
        ends = 'marker-end="url(#head)"' + (' marker-start="url(#head)"' if both else "")
        self.parts[-1] = self.parts[-1].replace("/>", f" {ends}/>")

    def render(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'font-family="{FONT}" role="img"><title>{escape(self.title)}</title><defs>{HEAD}</defs>\n'
            f'<rect x=".5" y=".5" width="{self.width - 1}" height="{self.height - 1}" rx="10" fill="#ffffff" '
            f'stroke="{PALE}"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )

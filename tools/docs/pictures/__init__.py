"""The diagrams and plots of the documentation, drawn as SVG in both languages.

svg.py draws shapes, the other modules one picture each. `make generate` writes them, so `make verify` notices a
picture that is out of date.
"""

from __future__ import annotations

from tools.docs.pictures import architecture, barrier, goodput, phases, pods, recovery, restarts

LANGUAGES = {"": 0, ".zh": 1}
"""The end of a file's name, and which of two texts it shows."""
PICTURES = {
    "architecture": architecture.draw,
    "barrier": barrier.draw,
    "goodput": goodput.draw,
    "phases": phases.draw,
    "pods": pods.draw,
    "recovery": recovery.draw,
    "restarts": restarts.draw,
}


def pictures() -> dict[str, str]:
    """The content of every picture by its path in the repository."""
    return {
        f"docs/images/{name}{suffix}.svg": draw(language)
        for name, draw in PICTURES.items()
        for suffix, language in LANGUAGES.items()
    }

"""The PaddleJobs in the product documents, which may be next to the repository."""

from __future__ import annotations

from pathlib import Path

SEEDS = Path(__file__).resolve().parents[3] / "shared" / "seeds"
ABSENT = f"the product documents are not next to the repository ({SEEDS.parent.name}/{SEEDS.name})"
GROUP = "apiVersion: batch.paddlepaddle.org/v1"


def seed_jobs() -> list[tuple[str, str]]:
    """Every PaddleJob as (document:line, YAML text), unchanged except for the document's indentation."""
    return [job for document in sorted(SEEDS.glob("*.txt")) for job in _jobs_in(document)]


def _jobs_in(document: Path) -> list[tuple[str, str]]:
    lines = document.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip() == GROUP]
    return [(f"{document.name[:3]}:{start + 1}", _yaml_from(lines, start)) for start in starts]


def _yaml_from(lines: list[str], start: int) -> str:
    """The text from `apiVersion` to the end of its block: a fence, `---`, or text with less indentation."""
    margin = lines[start].index("apiVersion")
    taken: list[str] = []
    for line in lines[start:]:
        text = line[margin:]
        left_of_margin = line[:margin].strip()
        if left_of_margin or text.startswith(("```", "---")):
            break
        if text and not text[0].isspace() and ":" not in text:
            break
        taken.append(text.rstrip())
    return "\n".join(taken).rstrip() + "\n"

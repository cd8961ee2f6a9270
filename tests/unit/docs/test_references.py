"""The Chinese references show Chinese texts."""

from __future__ import annotations

from tools.cli_reference import page
from tools.docs.chinese import texts
from tools.monitoring import reference as metrics
from tools.reference import tables


def shown() -> set[str]:
    """Every text of the references that can be translated."""
    found: set[str] = set()

    def collect(text: str) -> str:
        found.add(text)
        return text

    tables("", collect)
    page(collect)
    metrics.page(collect)
    return found - {""}


def test_nearly_all_texts_are_translated():
    missing = sorted(shown() - set(texts()))
    assert len(missing) < 0.1 * len(texts()), f"add them to tools/docs/chinese.yaml: {missing}"


def test_no_translation_is_left_of_a_text_that_is_gone():
    gone = sorted(set(texts()) - shown())
    assert len(gone) < 0.1 * len(texts()), f"remove them from tools/docs/chinese.yaml: {gone}"

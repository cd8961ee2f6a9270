"""The schema of a pod template is generated, and an edit by hand is noticed even without Go."""

from __future__ import annotations

from pathlib import Path

from tools.pod_template_schema import FILE, is_untouched

TEXT = (Path(__file__).parents[2] / FILE).read_text()


def test_the_schema_of_a_pod_template_has_its_recorded_hash():
    assert is_untouched(TEXT)


def test_an_edit_by_hand_is_noticed():
    assert not is_untouched(TEXT.replace('"minItems":1', '"minItems":2'))
    assert not is_untouched(TEXT.replace("@v1.", "@v9."))

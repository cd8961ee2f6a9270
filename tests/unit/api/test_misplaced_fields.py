"""An unknown field that the schema knows elsewhere: where it belongs, and how to move it there."""

from __future__ import annotations

import pytest

from paddlejob.api.checks.misplaced import METADATA_FIELDS, remedy


@pytest.mark.parametrize("field", METADATA_FIELDS)
def test_a_field_of_the_metadata_belongs_there(field: str):
    if field not in ("name", "labels", "annotations"):
        assert remedy(("spec",), field) == (
            "it belongs in metadata; move it there and indent it below `metadata:`"
        )  # fmt: skip
    assert remedy(("metadata",), field).startswith("it belongs in") == (field in ("name",))


@pytest.mark.parametrize(
    ("path", "field", "where"),
    [
        (("spec", "worker"), "cleanPodPolicy", "it belongs in spec, beside worker; indent it less"),
        (("spec", "worker", "template", "spec"), "replicas",
         "it belongs in spec.worker, beside template; indent it less"),
        (("spec",), "kind", "it belongs in the top level; indent it less"),
        (("spec", "ps"), "containers",
         "it belongs in spec.ps.template.spec; move it there and indent it below `spec:`"),
        (("spec", "ps", "template", "spec"), "image",
         "it belongs in spec.ps.template.spec.containers[0]; move it there and indent it below `containers:`"),
        (("spec", "worker", "template", "spec", "containers", 2), "limits",
         "it belongs in spec.worker.template.spec.containers[2].resources; move it there and indent it below "
         "`resources:`"),
        (("spec", "worker"), "nonsense", ""),
        (("spec",), "worker", ""),
    ],
)  # fmt: skip
def test_an_unknown_field_is_shown_where_it_belongs(path: tuple[str | int, ...], field: str, where: str):
    assert remedy(path, field) == where

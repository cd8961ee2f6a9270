"""The chart's values: each is described, and the schema knows exactly these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tools.chart_readme import Value, chart_readme, described

CHART = Path(__file__).parents[3] / "deploy/chart"
VALUES, SCHEMA = (CHART / "values.yaml").read_text(), (CHART / "values.schema.json").read_text()


def fields(schema: dict[str, Any], prefix: str = "") -> set[str]:
    """The paths of all values that the schema admits."""
    found: set[str] = set()
    for name, field in schema["properties"].items():
        inner = fields(field, f"{prefix}{name}.") if "properties" in field else {f"{prefix}{name}"}
        found |= inner
    return found


def test_a_comment_above_a_value_is_its_meaning():
    values = "# One.\na: 1\n\nb:\n  # Two\n  # lines.\n  c: {d: x}\ne: []\n"
    schema = '{"properties": {"a": {}, "b": {"properties": {"c": {}}}, "e": {}}}'
    assert list(described(values, schema)) == [
        Value("a", 1, "One."),
        Value("b.c", {"d": "x"}, "Two lines."),
        Value("e", [], ""),
    ]
    assert '| `b.c` | `{"d": "x"}` | Two lines. |' in chart_readme(values, schema)


@pytest.mark.parametrize("value", list(described(VALUES, SCHEMA)), ids=lambda value: value.path)
def test_every_value_is_described(value: Value):
    assert value.meaning.endswith(".")


def test_the_schema_admits_the_values_and_no_others():
    assert fields(json.loads(SCHEMA)) - {"global"} == {one.path for one in described(VALUES, SCHEMA)}


@pytest.mark.parametrize("file", ["values.yaml", "values-production.yaml"])
def test_the_values_that_are_shipped_match_the_schema(file: str):
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA))
    assert not list(validator.iter_errors(yaml.safe_load((CHART / file).read_text())))

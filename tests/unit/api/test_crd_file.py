"""The CRD in the repository is the one that the types and rules make."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paddlejob.api.crd import crd

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("file", ["deploy/v1/crd.yaml", "deploy/chart/crds/crd.yaml"])
def test_the_file_is_current(file: str):
    stored = yaml.load((ROOT / file).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert stored == crd(), "run `make generate`"

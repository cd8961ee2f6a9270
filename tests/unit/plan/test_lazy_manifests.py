"""The plan of a large job is small: a manifest is built when it is sent."""

from __future__ import annotations

import tracemalloc

from paddlejob.plan import Create, World, plan
from tests.support.builders import NOON, job


def test_planning_six_thousand_workers_takes_little_memory():
    made = job(workers=6000)
    tracemalloc.start()
    decided = plan(made, World(), NOON)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(decided.actions) == 6000
    assert peak < 10 * 2**20, "with their manifests it was 33 MiB, and more with larger templates"


def test_each_manifest_is_built_anew_so_that_none_can_change_another():
    create = plan(job(), World(), NOON).actions[0]
    assert isinstance(create, Create)
    create.manifest["spec"]["nodeName"] = "node-1"
    assert "nodeName" not in create.manifest["spec"]

"""Durations, sizes, counts and objects as people read them."""

from __future__ import annotations

import time

import pytest

from paddlejob.client.describe.formats import as_list, to_json, to_yaml
from paddlejob.client.describe.humanize import age, duration, plural, restarts, run_time, size
from paddlejob.plan import times
from tests.support.builders import job


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m0s"), (599, "9m59s"), (600, "10m"), (7199, "119m"),
        (7200, "2h0m"), (7260, "2h1m"), (172799, "47h59m"), (172800, "2d"),
    ],
)  # fmt: skip
def test_durations_read_as_kubectl_writes_them(seconds: float, text: str):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"), (9, "9"), (999, "999"), (1000, "1.0Ki"), (10 << 10, "10Ki"), (999 << 10, "999Ki"), (1 << 20, "1.0Mi"),
        (2 << 30, "2.0Gi"), (5 << 40, "5.0Ti"), (5000 << 40, "5000Ti"),
    ],
)  # fmt: skip
def test_sizes_have_the_largest_unit_that_fits(count: float, text: str):
    assert size(count) == text


def test_counts_and_times_of_a_job_are_written_for_people():
    assert (plural(0, "pod"), plural(1, "pod"), plural(2, "pod")) == ("0 pods", "1 pod", "2 pods")
    counted = job(status={"restarts": 1, "disruptions": 2, "ignoredFailures": 3})
    assert restarts(counted) == ", 1 restart, 2 disruptions, 3 ignored failures"
    assert restarts(job()) == ""
    created = job()
    started = {"startTime": "2027-01-15T08:00:00Z", "completionTime": "2027-01-15T08:00:09Z"}
    assert run_time(job(status=started)) == "9s"
    assert run_time(job(status={"startTime": times.format(time.time() - 7200)})) == "2h0m"
    recent = created.metadata.model_copy(update={"creationTimestamp": times.format(time.time() - 7200)})
    unknown = created.metadata.model_copy(update={"creationTimestamp": ""})
    assert run_time(created.model_copy(update={"metadata": recent})) == "2h0m", "since it was created"
    assert run_time(created.model_copy(update={"metadata": unknown})) == "0s"
    assert age(created.model_copy(update={"metadata": recent})) == "2h0m"
    assert age(created.model_copy(update={"metadata": unknown})) == ""


def test_objects_are_written_in_the_order_of_their_fields_and_without_aliases():
    shared = {"名": "值"}
    assert to_yaml({"b": shared, "a": shared}, {"c": 1}) == "b:\n  名: 值\na:\n  名: 值\n---\nc: 1\n"
    assert to_json({"名": [1]}) == '{\n  "名": [\n    1\n  ]\n}\n'
    assert as_list([{"a": 1}]) == {"apiVersion": "v1", "kind": "List", "items": [{"a": 1}]}

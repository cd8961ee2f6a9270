"""Quantities as Kubernetes writes them, and what jobs request."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.quantity import format_quantity, of_job, of_pod, parse_quantity
from paddlejob.api.types import PaddleJob
from paddlejob.errors import BadInput
from tests.support.builders import document, template


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), (2, 2), (1.5, 1.5), ("1n", 1e-9), ("1u", 1e-6), ("500m", 0.5), ("1k", 1e3), ("1M", 1e6), ("2G", 2e9),
        ("1T", 1e12), ("1P", 1e15), ("1E", 1e18), ("1Ki", 2**10), ("1Mi", 2**20), ("1Gi", 2**30), ("1Ti", 2**40),
        ("1Pi", 2**50), ("1Ei", 2**60), ("1.5Gi", 1.5 * 2**30), ("1e3", 1e3), ("2E-1", 0.2), (".5", 0.5), ("-1", -1),
    ],
)  # fmt: skip
def test_quantities_have_the_units_exponents_and_signs_of_kubernetes(text: str | float, value: float):
    assert parse_quantity(text) == pytest.approx(value)


@pytest.mark.parametrize("quantity", ["", "much", "1GB", "Gi", "1.2.3", "."])
def test_text_that_is_not_a_quantity_is_rejected(quantity: str):
    with pytest.raises(BadInput, match="is not a quantity"):
        parse_quantity(quantity)


@pytest.mark.parametrize(
    ("resource", "quantity", "shown"),
    [("memory", 1.5 * 2**30, "1.5 GiB"), ("memory", 2**27, "0.1 GiB"), ("cpu", 2.0, "2"), ("cpu", 0.25, "0.25")],
)
def test_memory_is_shown_in_gib_and_all_else_as_a_plain_number(resource: str, quantity: float, shown: str):
    assert format_quantity(resource, quantity) == shown


def test_the_containers_of_a_pod_count_together_and_a_request_goes_before_a_limit():
    first = {"resources": {"limits": {"cpu": 4, "memory": "1Gi"}, "requests": {"cpu": "500m"}}}
    second = {"resources": {"requests": {"cpu": 1}, "limits": None}}
    assert of_pod({"containers": [first, second, {}, {"resources": None}]}) == {"cpu": 1.5, "memory": 2**30}


def test_init_containers_need_what_the_largest_needs_and_sidecars_among_them_are_added():
    def asks(gpus: int, **more: str) -> dict[str, Any]:
        return {"resources": {"limits": {"nvidia.com/gpu": gpus}}, **more}

    sidecar = asks(1, restartPolicy="Always")
    for init, expected in [
        ([], 2),
        ([asks(1), asks(3)], 3),
        ([sidecar], 3),
        ([sidecar, asks(3)], 4),
        ([asks(3), sidecar], 3),
    ]:
        assert of_pod({"containers": [asks(2)], "initContainers": init}) == {"nvidia.com/gpu": expected}
    assert of_pod({"containers": [{}], "initContainers": [asks(1)]}) == {"nvidia.com/gpu": 1}


def test_a_limit_without_a_request_is_a_request():
    limits = {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}
    job = PaddleJob.model_validate(document("mnist", workers=3, worker_={"template": template(**limits)}))
    assert of_job(job.spec) == {"cpu": 3, "memory": 3 * 1024**3}

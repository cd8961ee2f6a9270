"""Facts about a job that several packages need, each with one source."""

from __future__ import annotations

import pytest

from paddlejob.api.change import with_fields
from paddlejob.api.template import training_container
from paddlejob.errors import InvalidJob
from tests.support.builders import document


def test_the_container_named_paddle_trains_else_the_first():
    assert training_container([{"name": "log"}, {"name": "paddle"}]) == {"name": "paddle"}
    assert training_container([{"name": "log"}, {"name": "proxy"}]) == {"name": "log"}


def test_a_change_is_merged_into_the_spec():
    before = document(elastic=1)
    after = with_fields(before, {"suspend": True, "worker": {"replicas": 3}})
    assert after["spec"]["suspend"] is True
    assert after["spec"]["worker"] == {**before["spec"]["worker"], "replicas": 3}
    assert before["spec"]["worker"]["replicas"] == 2, "the document that was given stays as it is"


def test_a_change_that_changes_nothing_returns_the_same_document():
    before = document()
    assert with_fields(before, {"worker": {"replicas": 2}}) is before


def test_a_change_that_is_not_allowed_says_why():
    with pytest.raises(InvalidJob, match=r"mnist: spec\.worker: .*elastic"):
        with_fields(document(), {"worker": {"replicas": 3}})
    with pytest.raises(InvalidJob, match=r"spec\.worker\.replicas"):
        with_fields(document(elastic=1), {"worker": {"replicas": 0}})

"""The domains of nodes are read from their labels, once in a while and only where they decide."""

from __future__ import annotations

import logging

import pytest

from paddlejob.kube.client import Client
from paddlejob.operator.domains import Domains
from tests.support.builders import job
from tests.support.scripted_cluster import Object, ScriptedCluster, Serve, failure

ZONED = job(schedulingPolicy={"topology": {"preferred": "zone"}})


def node(name: str, **labels: str) -> tuple[str, Object]:
    return f"nodes/{name}", {"metadata": {"name": name, "labels": labels}}


async def test_domains_are_the_values_of_the_label(serve: Serve):
    api = ScriptedCluster(node("a", zone="east"), node("b"))
    async with Client(await serve(api.respond)) as client:
        domains = Domains(client)
        assert await domains.of_nodes(ZONED, ["a", "b", "gone", "a"]) == {"a": "east"}
        assert await domains.of_nodes(job(), ["a"]) == {}, "a job without a topology"


async def test_a_node_is_read_once_in_a_while(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    api = ScriptedCluster(node("a", zone="east"))
    async with Client(await serve(api.respond)) as client:
        domains = Domains(client)
        await domains.of_nodes(ZONED, ["a"])
        api.put(*node("a", zone="west"))
        assert await domains.of_nodes(ZONED, ["a"]) == {"a": "east"}, "as remembered"
        monkeypatch.setattr("paddlejob.operator.domains.REMEMBERED_SECONDS", 0.0)
        assert await domains.of_nodes(ZONED, ["a"]) == {"a": "west"}


async def test_without_permission_no_domain_is_known_and_the_log_says_so_once(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("paddlejob.operator.domains.REMEMBERED_SECONDS", 0.0)
    api = ScriptedCluster(node("a", zone="east"))
    api.answers["GET", "nodes/a"] = failure(403, "Forbidden", "nodes is forbidden")
    async with Client(await serve(api.respond)) as client:
        domains = Domains(client)
        with caplog.at_level(logging.WARNING):
            assert [await domains.of_nodes(ZONED, ["a"]) for _ in range(2)] == [{}, {}]
        assert caplog.text.count("nodes is forbidden") == 1


async def test_an_error_is_not_remembered(serve: Serve, caplog: pytest.LogCaptureFixture):
    api = ScriptedCluster(node("a", zone="east"))
    api.answers["GET", "nodes/a"] = failure(500, "InternalError")
    async with Client(await serve(api.respond)) as client:
        domains = Domains(client)
        assert await domains.of_nodes(ZONED, ["a"]) == {}
        assert "node a cannot be read" in caplog.text
        del api.answers["GET", "nodes/a"]
        assert await domains.of_nodes(ZONED, ["a"]) == {"a": "east"}

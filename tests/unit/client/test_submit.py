"""Submitting from Python: which image is used, what is sent to the API server, and what an error says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import paddlejob as pj
from paddlejob import contract
from tests.support.cluster_verbs import Pdj, api, called
from tests.support.scripted_cluster import ScriptedCluster

__all__ = ["api", "called"]
Submit = Callable[..., Awaitable[pj.Run]]


@pytest.fixture
async def submit(called: Pdj, api: ScriptedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Submit:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "paddlejob").mkdir()
    (tmp_path / "paddlejob/config.toml").write_text('image = "default:1"\ngpu_image = "gpu:1"\n')
    api.deployments = []
    return lambda namespace="", **options: asyncio.to_thread(
        lambda: pj.submit(pj.collective("train.py", **options), namespace=namespace)
    )


@pytest.mark.parametrize(
    ("options", "used"), [({}, "default:1"), ({"gpus": 1}, "gpu:1"), ({"image": "mine:1"}, "mine:1")]
)
async def test_a_program_without_an_image_gets_the_default(
    submit: Submit, api: ScriptedCluster, options: dict[str, Any], used: str
):
    with pytest.warns(UserWarning, match="no operator is installed in this cluster, so jobs do not start"):
        run = await submit(workers=2, **options)
    assert [one.path for one in api.asked] == ["default/paddlejobs"]
    worker = api.objects["default/paddlejobs/train"]["spec"]["worker"]
    assert (worker["template"]["spec"]["containers"][0]["image"], worker["replicas"]) == (used, 2)
    assert repr(run) == "<Run default/train>"


async def test_code_is_shipped_in_config_maps_of_the_job(submit: Submit, api: ScriptedCluster):
    with pytest.warns(UserWarning, match="no operator is installed"):
        run = await submit(code=".", namespace="other")
    assert [one.path for one in api.asked] == ["other/paddlejobs", "other/configmaps"]
    job, part = api.objects["other/paddlejobs/train"], api.asked[1].body
    assert part["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    digest, _, parts = job["metadata"]["annotations"][contract.ANNOTATION_CODE].partition("/")
    assert digest.startswith(part["metadata"]["name"][5:-2]) and parts == "1"
    assert repr(run) == "<Run other/train>"


async def test_without_a_default_the_error_says_where_to_set_an_image(
    submit: Submit, api: ScriptedCluster, tmp_path: Path
):
    (tmp_path / "paddlejob/config.toml").write_text("")
    with pytest.raises(pj.PaddleJobError, match=r"image is missing; .* or set `gpu_image` in"):
        await submit(gpus=1)
    assert api.asked == []

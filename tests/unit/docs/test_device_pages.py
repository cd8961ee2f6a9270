"""What docs/howto/gpus.md and docs/howto/devices.md show is true of the product."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from paddlejob.api.checks.pods import check_job
from paddlejob.api.devices import DEVICES
from tests.support.called_pdj import pdj

HOWTO = Path(__file__).parents[3] / "docs/howto"


def test_the_commands_of_the_page_ask_for_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    for command, resource, count in (
        ("submit train.py --workers 2 --devices xpu:8 --image IMAGE --code . --dry-run", "kunlunxin.com/xpu", 8),
        ("submit train.py --devices huawei.com/Ascend910B4:1 --image IMAGE --dry-run", "huawei.com/Ascend910B4", 1),
        ("run train.py --devices npu:1 --dry-run", "huawei.com/Ascend910", 1),
        ("init collective --device mlu -o job.yaml", "cambricon.com/mlu", 1),
    ):
        done = pdj(*command.split())
        made = yaml.safe_load(Path("job.yaml").read_text() if "init" in command else done.stdout)
        container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
        assert container["resources"]["limits"] == {resource: count}
        assert ("paddle.distributed.launch" in container["command"]) is (count > 1 or "init" in command)


@pytest.mark.parametrize("page", ["gpus.md", "gpus.zh.md"])
def test_the_job_with_rdma_is_valid_and_nothing_is_wrong_with_it(page: str):
    blocks = re.findall(r"```yaml\n(.*?)```", (HOWTO / page).read_text(), re.DOTALL)
    (shown,) = [yaml.safe_load(block) for block in blocks if "kind: PaddleJob" in block]
    assert check_job(shown) == []


@pytest.mark.parametrize("page", ["devices.md", "devices.zh.md"])
def test_the_table_of_the_page_is_the_table_of_the_product(page: str):
    rows = [line.split("|") for line in (HOWTO / page).read_text().splitlines() if line.startswith("| `")]
    for device in DEVICES:
        row = next(row for row in rows if row[1].strip() == f"`{device.kind}`" and len(row) == 7)
        assert device.resource in row[3] or device.resource.startswith("huawei.com/Ascend")
        assert (device.selected in row[4], f"`{device.visible}`" in row[5]) == (True, True)

"""Devices of other vendors on this machine: found by their files, locked, and made visible to one pod each."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.api.types import Role
from paddlejob.local.machine.allocation import Allocation
from paddlejob.local.machine.devices import environment, find_devices
from paddlejob.local.machine.gpus import Gpu
from paddlejob.local.machine.reservations import Reservations
from paddlejob.local.machine.resources import Machine
from paddlejob.local.state.store import JobStore
from tests.support.builders import job, template


def found(root: Path, *files: str, **environ: str) -> list[tuple[str, str, str]]:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    listed = find_devices({"PATH": str(root), **environ}, root).gpus
    return [(one.kind, one.uuid, one.visible_as) for one in listed]


def test_devices_are_found_by_the_files_of_their_driver(tmp_path: Path):
    assert found(tmp_path, "dev/xpu10", "dev/xpu2", "dev/xpuctrl", "dev/davinci0", "dev/davinci_manager") == [
        ("xpu", "/dev/xpu2", "0"),
        ("xpu", "/dev/xpu10", "1"),
        ("npu", "/dev/davinci0", "0"),
    ]


@pytest.mark.parametrize(("driver", "kind"), [("mxcd", "metax_gpu"), ("mkfd", "dcu"), ("card", "")])
def test_files_that_several_vendors_use_need_the_driver_of_one(tmp_path: Path, driver: str, kind: str):
    expected = [(kind, "/dev/dri/renderD128", "0"), (kind, "/dev/dri/renderD129", "1")] if kind else []
    assert found(tmp_path, "dev/dri/renderD129", "dev/dri/renderD128", f"dev/{driver}") == expected


def test_the_driver_of_nvidia_lists_its_gpus_not_their_files(tmp_path: Path):
    assert found(tmp_path, "dev/nvidia0") == []


def test_the_variable_of_the_vendor_says_which_of_them_jobs_may_use(tmp_path: Path):
    files = [f"dev/cambricon_dev{index}" for index in range(4)]
    assert [name for _, name, _ in found(tmp_path, *files, MLU_VISIBLE_DEVICES="1, 3")] == [
        "/dev/cambricon_dev1",
        "/dev/cambricon_dev3",
    ]
    assert found(tmp_path, MLU_VISIBLE_DEVICES="") == []
    xpus = [f"dev/xpu{index}" for index in range(3)]
    only = found(tmp_path, *xpus, XPULINK_VISIBLE_DEVICES="2", XPU_VISIBLE_DEVICES="0")
    assert [name for _, name, _ in only if "xpu" in name] == ["/dev/xpu2"], "as Paddle 3 reads them"


def test_a_program_sees_its_own_devices_and_no_others():
    gpu, one, two = Gpu("GPU-1", "0"), Gpu("/dev/xpu0", "0", "xpu"), Gpu("/dev/xpu1", "1", "xpu")
    assert environment([two], [gpu, one, two]) == {
        "CUDA_VISIBLE_DEVICES": "",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "XPU_VISIBLE_DEVICES": "1",
        "XPULINK_VISIBLE_DEVICES": "1",
    }
    assert environment([], []) == {}


@pytest.fixture
def devices(tmp_path: Path) -> tuple[Gpu, ...]:
    """Two of one kind and one of another, with names that no other test locks."""
    return tuple(
        Gpu(f"{tmp_path}/{kind}{index}", str(index), kind) for kind, index in (("npu", 0), ("npu", 1), ("xpu", 0))
    )


def test_each_pod_locks_its_own_and_a_job_that_cannot_have_all_holds_none(tmp_path: Path, devices: tuple[Gpu, ...]):
    store = JobStore(tmp_path / "state")
    reservations = Reservations(store, Machine("m", 4, 1 << 30, devices))
    held, waiting = Allocation(), Allocation()

    def reserve(name: str, allocation: Allocation, **limits: int) -> str:
        made = job(name, worker_={"replicas": 1, "template": template(resources={"limits": limits})})
        folder = store.folder(("default", name))
        folder.path.mkdir(parents=True, exist_ok=True)
        return reservations.reserve(made, folder, allocation, False, [(Role.WORKER, 0)])

    ascend = "huawei.com/Ascend910B4"
    assert reserve("first", held, **{ascend: 2}) == ""
    assert [one.visible_as for one in held.gpus("first-worker-0")] == ["0", "1"]
    message = reserve("second", waiting, **{"kunlunxin.com/xpu": 1, ascend: 1})
    assert message.startswith(f"insufficient {ascend}: the job requests 1 and this machine has 2; other jobs hold")
    assert waiting.gpus("second-worker-0") == []
    third = Allocation()
    assert reserve("third", third, **{"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 100, "rdma/hca": 1}) == ""
    assert [one.kind for one in third.gpus("third-worker-0")] == ["xpu"], "the second job has not kept it"
    for one in (held, third):
        one.clear()
    assert reserve("second", waiting, **{"kunlunxin.com/xpu": 1, ascend: 1}) == ""
    waiting.clear()


def test_what_is_no_device_is_not_counted_and_an_unknown_one_is_missing():
    machine = Machine("m", 4, 1 << 30, (Gpu("GPU-1", "0"),))
    assert machine.capacity("rdma/hca") is machine.capacity("nvidia.com/gpumem") is None
    assert machine.capacity("nvidia.com/gpu") == 1
    assert machine.capacity("example.com/card") == machine.capacity("nvidia.com/mig-1g.5gb") == 0

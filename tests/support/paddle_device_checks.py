"""Run by other interpreters: lets init_parallel_env believe in each build of Paddle, and says which device it reached.

Reads {case: {"built_in": "cuda", "xpu" or "", "plugin": name, "environment": {...}}} from stdin and prints
{case: the device, or the error}. Standard library and paddle only.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import paddle.distributed.parallel as parallel


class Reached(Exception):
    pass


class PatchedCore:
    """paddle.base.core of a build for another device; its places only say that they were reached."""

    def __init__(self, core: Any, built_in: str) -> None:
        self._core, self._built_in = core, built_in

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def is_compiled_with_cuda(self) -> bool:
        return self._built_in == "cuda"

    def is_compiled_with_xpu(self) -> bool:
        return self._built_in == "xpu"

    def CUDAPlace(self, index: int) -> None:
        raise Reached(f"cuda:{index}")

    def XPUPlace(self, index: int) -> None:
        raise Reached(f"xpu:{index}")

    def CustomPlace(self, kind: str, index: int) -> None:
        raise Reached(f"{kind}:{index}")


def reached(case: dict[str, Any]) -> str:
    os.environ.clear()
    os.environ.update(case["environment"])
    parallel.core = PatchedCore(REAL, case["built_in"])
    if hasattr(parallel, "get_all_custom_device_type"):  # Paddle 3 asks its plugins, 2.6 PADDLE_XCCL_BACKEND
        parallel.get_all_custom_device_type = lambda: [case["plugin"]] if case["plugin"] else []
    try:
        parallel.init_parallel_env()
    except (Reached, ValueError, NotImplementedError) as error:
        return str(error)
    return "no device"


REAL = parallel.core
if __name__ == "__main__":
    output = os.dup(1)
    os.dup2(2, 1)  # Paddle prints to stdout
    found = {name: reached(case) for name, case in json.load(sys.stdin).items()}
    os.write(output, json.dumps(found).encode())
    os._exit(0)

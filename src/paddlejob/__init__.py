"""Train PaddlePaddle models on more than one process: on a laptop, on one server, on a Kubernetes cluster.

    import paddlejob as pj

    job = pj.collective("train.py", workers=2)
    run = pj.run(job)                    # or pj.submit(job, namespace="team")
    run.wait()

The names below are imported when they are first used, so that `import paddlejob` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paddlejob.client import Job, Run, attach, collective, load, parameter_server, run, submit
    from paddlejob.errors import JobFailed, PaddleJobError

__version__ = "0.1.0"
__all__ = [
    "Job", "JobFailed", "PaddleJobError", "Run", "attach", "collective", "load", "parameter_server", "run", "submit",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "paddlejob.errors" if name in ("JobFailed", "PaddleJobError") else "paddlejob.client"
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

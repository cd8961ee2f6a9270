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
    from paddlejob.client.handle import Run
    from paddlejob.client.jobs import Job, collective, load, parameter_server
    from paddlejob.client.python_api import attach, run, submit
    from paddlejob.errors import JobFailed, PaddleJobError

__version__ = "0.2.0"
__all__ = [
    "Job", "JobFailed", "PaddleJobError", "Run", "attach", "collective", "load", "parameter_server", "run", "submit",
]  # fmt: skip
MODULES = {
    "paddlejob.client.handle": ("Run",),
    "paddlejob.client.jobs": ("Job", "collective", "load", "parameter_server"),
    "paddlejob.client.python_api": ("attach", "run", "submit"),
    "paddlejob.errors": ("JobFailed", "PaddleJobError"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""The functions of `import paddlejob as pj` that start a job, or find one that exists."""

from __future__ import annotations

import re
import warnings

from paddlejob.client.handle import Run
from paddlejob.client.jobs import Job
from paddlejob.errors import BadInput, NotPossible

ARGUMENTS = {"--cpu": "cpu=True", "--overcommit": "overcommit=True", "--python": "python=..."}
"""What remedies name by options, as arguments of `run`."""


def run(job: Job, *, namespace: str = "", cpu: bool = False, python: str = "", overcommit: bool = False) -> Run:
    """Train on this machine, in the background of this process: when this process ends, so does the training."""
    from paddlejob.client.interpreters import find_interpreter
    from paddlejob.client.start.begin import begin
    from paddlejob.client.start.check import check
    from paddlejob.client.start.on_machine import place
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.options import RunOptions
    from paddlejob.local.runner import start_spawned
    from paddlejob.local.state.store import JobStore
    from paddlejob.targets.local.local_target import LocalTarget
    from paddlejob.targets.remembered import read_remembered
    from paddlejob.targets.sync import SyncTarget

    _require_job(job)
    store = JobStore()
    options = RunOptions(
        volumes=dict(job.volumes), python=find_interpreter(python) or RunOptions().interpreter, overcommit=overcommit
    )
    loaded = job.loaded().in_namespace(namespace or read_remembered().local_namespace)
    checked = check([loaded], cluster=None, namespace=namespace)
    try:
        (placed,) = place(checked, options, store, this_machine(), cpu)
    except NotPossible as error:
        raise NotPossible(_with_arguments(str(error))) from None
    held, notes = begin(store, [(placed.document, placed.options)])
    _warn([*placed.notes, *checked.warnings, *notes])
    runner = start_spawned(store, held)
    return Run(SyncTarget(LocalTarget(store)), placed.job.namespace, placed.job.name, runner)


def submit(job: Job, *, namespace: str = "", context: str = "") -> Run:
    """Train on a cluster. With `code`, the directory is shipped with the job."""
    from paddlejob.api.fault import Severity
    from paddlejob.client.settings import default_image
    from paddlejob.client.start.check import check
    from paddlejob.client.start.send import operator_warnings, send
    from paddlejob.client.start.shipment import ship
    from paddlejob.client.start.submission import submission_of
    from paddlejob.targets.choose import cluster_target
    from paddlejob.targets.sync import SyncTarget

    _require_job(job)
    image = default_image(job.devices) if job.program and not job.image else ""
    target = cluster_target(context)
    loaded = job.loaded(image).in_namespace(namespace or target.default_namespace)
    checked = check([loaded], cluster=Severity.ERROR, namespace=namespace)
    submission, shipment = submission_of(checked), None
    if job.code:
        submission, shipment = ship(submission, job.code, job.program)
    send(target, submission, shipment)
    _warn([*checked.warnings, *operator_warnings(target, submission)])
    return Run(SyncTarget(target), *submission.jobs[0])


def _warn(messages: list[str]) -> None:
    """What `pdj run` and `pdj submit` print as notes and warnings."""
    for message in dict.fromkeys(messages):
        warnings.warn(_with_arguments(message), stacklevel=3)


def _with_arguments(text: str) -> str:
    for option, argument in ARGUMENTS.items():
        text = re.sub(rf"{option}\b", argument, text)
    return text


def _require_job(job: Job) -> None:
    if not isinstance(job, Job):
        raise BadInput(f"{job!r} is not a job; make one with pj.collective, pj.parameter_server or pj.load")


def attach(name: str, *, namespace: str = "", cluster: bool | None = None, context: str = "") -> Run:
    """The handle of a job that exists, on this machine or on a cluster."""
    from paddlejob.targets.choose import choose_target

    target = choose_target(cluster, context)
    found = Run(target, namespace or target.default_namespace, name)
    found.view()
    return found

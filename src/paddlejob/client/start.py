"""Starting jobs: on this machine, or on a cluster."""

from __future__ import annotations

import copy
import os
import warnings

from paddlejob.api.program import Overrides, overridden, python_file
from paddlejob.client.given import Given
from paddlejob.client.handle import Run
from paddlejob.client.jobs import Job
from paddlejob.errors import BadInput


def run(job: Job, *, namespace: str = "", cpu: bool = False, python: str = "", overcommit: bool = False) -> Run:
    """Train on this machine, in the background of this process: when this process ends, so does the training."""
    from paddlejob.client.begin import begin
    from paddlejob.client.interpreters import find_interpreter
    from paddlejob.client.prepare import prepare
    from paddlejob.client.targets.local import LocalTarget
    from paddlejob.client.targets.remembered import read_remembered
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.options import RunOptions
    from paddlejob.local.runner import start_spawned
    from paddlejob.local.state.store import Store

    _check(job)
    store = Store()
    options = RunOptions(
        folder=job.directory,
        volumes=dict(job.volumes),
        python=find_interpreter(python) or RunOptions().interpreter,
        overcommit=overcommit,
        environment=dict(os.environ),
    )
    program = python_file(job.program) if job.program else None
    given = Given([job.name or "job"], lambda _: [*job.others, copy.deepcopy(job.document)], program)
    if not namespace:
        given = given.in_namespace(read_remembered().local_namespace)
    (prepared,) = prepare(given, options, store, this_machine(), namespace, cpu)
    held, notes = begin(store, [(prepared.document, prepared.options)])
    _warn([*prepared.notes, *prepared.warnings, *notes])
    runner = start_spawned(store, held)
    return Run(LocalTarget(store), prepared.job.namespace, prepared.job.name, runner)


def submit(job: Job, *, namespace: str = "", context: str = "") -> Run:
    """Train on a cluster. With `code`, the directory is shipped with the job."""
    from paddlejob.client.settings import default_image
    from paddlejob.client.submit.code import ship
    from paddlejob.client.submit.send import operator_warnings, send
    from paddlejob.client.submit.submission import read_submission
    from paddlejob.client.targets.target import cluster_target

    _check(job)
    document = job.document
    if job.program and not job.image:
        document = overridden(document, Overrides(image=default_image(job.gpus)))
    submission = read_submission(Given([job.name or "job"], lambda _: [*job.others, document]), namespace)
    shipment = None
    if job.code:
        submission, shipment = ship(submission, job.code, job.program)
    target = cluster_target(context)
    submission = submission.in_namespace(namespace or target.default_namespace)
    send(target, submission, shipment)
    _warn([*submission.warnings, *operator_warnings(target, submission)])
    return Run(target, *submission.jobs[0])


def _warn(messages: list[str]) -> None:
    """What `pdj run` and `pdj submit` print as notes and warnings."""
    for message in dict.fromkeys(messages):
        warnings.warn(message, stacklevel=3)


def _check(job: Job) -> None:
    if not isinstance(job, Job):
        raise BadInput(f"{job!r}: is not a job; make one with pj.collective, pj.parameter_server or pj.load")


def attach(name: str, *, namespace: str = "", cluster: bool | None = None, context: str = "") -> Run:
    """The handle of a job that exists, on this machine or on a cluster."""
    from paddlejob.client.targets.target import choose_target

    target = choose_target(cluster, context)
    found = Run(target, namespace or target.default_namespace, name)
    found.view()
    return found

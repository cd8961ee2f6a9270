"""Conversion of other kinds of jobs to PaddleJobs: batch/v1 Jobs that start Paddle, and Kubeflow's PaddleJobs.

Whatever has no counterpart is left out, with a note that says where it was and what happens instead.
"""

from __future__ import annotations

from paddlejob import contract
from paddlejob.api.convert.job import as_workers, from_job, is_job, is_training_job
from paddlejob.api.convert.kubeflow import KUBEFLOW, from_kubeflow, is_kubeflow_job
from paddlejob.api.convert.parts import Converted, Obj
from paddlejob.api.convert.pod import MARKS
from paddlejob.errors import BadInput

__all__ = ["Converted", "as_workers", "convert", "convertible", "is_job", "is_kubeflow_job", "is_training_job"]


def convertible(document: Obj) -> bool:
    return is_training_job(document) or is_kubeflow_job(document)


def convert(document: Obj) -> Converted:
    """The PaddleJob, with a note for everything that has no counterpart."""
    if is_training_job(document):
        return from_job(document)
    if is_kubeflow_job(document):
        return from_kubeflow(document)
    if document.get("apiVersion") == contract.API_VERSION and document.get("kind") == contract.KIND:
        raise BadInput(f"{contract.API_VERSION} {contract.KIND}: no conversion needed")
    raise BadInput(
        f"{document.get('apiVersion')} {document.get('kind')} cannot be converted; `pdj convert` accepts a batch/v1 "
        f"Job whose containers set {' or '.join(MARKS)}, and a PaddleJob of {KUBEFLOW}"
    )

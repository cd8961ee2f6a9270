"""Other kinds of jobs as PaddleJobs: the documents' batch/v1 Job, and Kubeflow's PaddleJob.

What has no counterpart is left out and named in a note: where it was, and what happens instead.
"""

from __future__ import annotations

from paddlejob import contract
from paddlejob.api.convert_job import as_workers, from_job, is_job, is_training_job
from paddlejob.api.convert_kubeflow import KUBEFLOW, from_kubeflow, is_kubeflow_job
from paddlejob.api.convert_parts import Converted, Obj
from paddlejob.api.convert_pod import MARKS
from paddlejob.errors import BadInput

__all__ = ["Converted", "as_workers", "convert", "convertible", "is_job", "is_kubeflow_job", "is_training_job"]


def convertible(document: Obj) -> bool:
    return is_training_job(document) or is_kubeflow_job(document)


def convert(document: Obj) -> Converted:
    """The PaddleJob, and a note for each thing that has no counterpart."""
    if is_training_job(document):
        return from_job(document)
    if is_kubeflow_job(document):
        return from_kubeflow(document)
    if document.get("apiVersion") == contract.API_VERSION and document.get("kind") == contract.KIND:
        raise BadInput(f"{contract.API_VERSION} {contract.KIND}: is what would come out; it needs no conversion")
    raise BadInput(
        f"{document.get('apiVersion')} {document.get('kind')}: is no job that can be converted; a batch/v1 Job whose "
        f"containers set {' or '.join(MARKS)} can, and a PaddleJob of {KUBEFLOW}"
    )

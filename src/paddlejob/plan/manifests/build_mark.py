"""The mark on a pod that tells which version of the spec it was built from."""

from __future__ import annotations

import hashlib
import json

from paddlejob.api.types import PaddleJob


def build_digest(job: PaddleJob) -> str:
    """Changes with the part of the spec that pods are built from.

    It covers what the user wrote, not the manifests made from it: a newer operator that builds pods differently
    must not restart jobs that an older one started.
    """
    roles = {role: [spec.replicas, spec.template] for role, spec in job.spec.roles.items()}
    return hashlib.sha256(json.dumps(roles, sort_keys=True).encode()).hexdigest()[:12]


def template_digest(job: PaddleJob) -> str:
    """Changes with the templates alone, whatever the number of replicas."""
    templates = {role: spec.template for role, spec in job.spec.roles.items()}
    return hashlib.sha256(json.dumps(templates, sort_keys=True).encode()).hexdigest()[:12]


def templates_changed(job: PaddleJob) -> bool:
    """Whether the user changed templates since the status was written, which takes a suspension: two generations.

    At the next generation a template that reads differently has defaults of a newer CRD.
    """
    seen = job.status
    return job.metadata.generation > seen.observedGeneration + 1 and template_digest(job) != seen.templateDigest


def build_mark(job: PaddleJob) -> str:
    """The digest, and the generation of the job that it was computed from."""
    return f"{build_digest(job)}/{job.metadata.generation}"


def is_built_from(job: PaddleJob, mark: str) -> bool:
    """An equal generation suffices: defaults of a newer CRD change the digest although the user changed nothing."""
    digest, _, generation = mark.partition("/")
    return digest == build_digest(job) or generation == str(job.metadata.generation)

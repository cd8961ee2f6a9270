"""Images can be built where the public sources of images and packages are slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs.pages import ROOT

DOCKERFILES = [ROOT / "Dockerfile", *sorted((ROOT / "examples/Dockerfiles").glob("*.Dockerfile"))]


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_the_base_image_and_the_sources_of_packages_are_build_arguments(file: Path):
    base, found, rest = file.read_text().partition("FROM ${PYTHON_IMAGE}\n")
    assert found, "the base image cannot be replaced"
    assert "ARG PYTHON_IMAGE=python:3.11-slim" in base
    assert "FROM " not in rest
    for command, argument in (("pip install", "ARG PIP_INDEX_URL\n"), ("apt-get", "ARG DEBIAN_MIRROR=")):
        assert command not in rest or argument in rest[: rest.index(command)], (
            f"{argument} must be declared before {command}"
        )

"""Binaries are built once, and an interrupted build does not count as finished."""

import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from paddlejob.errors import NotPossible
from testbed.build.binaries import binaries, cache_key, go
from testbed.build.gomod import go_mod, source_directory
from testbed.build.recipes import Recipe, recipe


def build_etcd(cache: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "testbed", "build", "etcd"]
    environment = os.environ | {"PADDLEJOB_CACHE": str(cache)}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.fixture
def sources() -> None:
    """Go, and the source of etcd, which is downloaded if possible."""
    try:
        source_directory(go(), recipe("etcd"))
    except NotPossible as error:
        pytest.skip(f"nothing can be built here: {error}")


@pytest.mark.usefixtures("sources")
def test_a_killed_build_is_repeated_and_two_concurrent_builds_build_once(tmp_path: Path) -> None:
    with build_etcd(tmp_path) as killed:
        assert killed.stderr is not None
        assert "building" in killed.stderr.readline()
        os.killpg(killed.pid, 9)
    with build_etcd(tmp_path) as first, build_etcd(tmp_path) as second:
        paths, logs = zip(first.communicate(), second.communicate(), strict=True)
    assert paths[0] == paths[1]
    assert "".join(logs).count("built in") == 1
    version = subprocess.run([paths[0].strip(), "--version"], capture_output=True, text=True, check=True).stdout
    assert "etcd Version: 3.6" in version


def test_binaries_of_the_user_take_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert binaries("etcd") == {"etcd": tmp_path / "etcd"}


def test_tags_are_part_of_the_key_and_recipes_without_any_keep_theirs() -> None:
    one = Recipe("etcd", "go.etcd.io/etcd/server/v3", "v3.6.8", ".")
    before = sha256(repr((one.name, one.module, one.version, one.package, one.main, one.ldflags)).encode()).hexdigest()
    assert cache_key(one) == f"etcd-v3.6.8-{before[:12]}"
    assert cache_key(replace(one, tags="small")) != cache_key(one)


def test_staging_modules_are_replaced_by_their_published_versions() -> None:
    own = {
        "Go": "1.26.0",
        "Godebug": [{"Key": "default", "Value": "go1.26"}],
        "Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "example.org/a"}, "New": {"Path": "example.org/b", "Version": "v1.2.3"}},
        ],
    }
    text = go_mod(Recipe("kubectl", "k8s.io/kubernetes", "v1.36.3", "k8s.io/kubernetes/cmd/kubectl"), own)
    assert text.splitlines() == [
        "module testbed",
        "go 1.26.0",
        "godebug default=go1.26",
        "require k8s.io/kubernetes v1.36.3",
        "replace k8s.io/api => k8s.io/api v0.36.3",
        "replace example.org/a => example.org/b v1.2.3",
    ]

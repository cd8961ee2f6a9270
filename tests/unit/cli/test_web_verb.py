"""`pdj web`: which targets its pages show, and how it is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.web.server import Options
from paddlejob.web.sessions import Sessions, announced
from tests.support.called_pdj import pdj

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: first
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: first, context: {cluster: c, user: u}}]
"""


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))


def test_pages_are_served_from_this_machine_and_from_a_cluster_that_is_selected(monkeypatch: pytest.MonkeyPatch):
    served: list[tuple[list[str], Options]] = []
    namespaces: list[str] = []

    def serve(lists: Any, options: Options, servers: Path, ready: Any) -> None:
        served.append(([jobs.name for jobs in lists], options))
        namespaces.extend(jobs.describe().namespace for jobs in lists)
        ready("http://x/#token=t")

    monkeypatch.setattr("paddlejob.web.server.serve", serve)
    done = pdj("web")
    assert done.stdout.splitlines()[0] == "Open http://x/#token=t"
    assert done.stderr == ""
    pdj("web", "--cluster", "--no-browser", "--read-only", "--port", "7")
    pdj("web", "--context", "first")
    pdj("target", "cluster")
    pdj("web")
    pdj("web", "--local")
    assert [names for names, _ in served] == [
        ["local"], ["local", "cluster"], ["local", "cluster"], ["local", "cluster"], ["local"]
    ]  # fmt: skip
    assert served[0][1] == Options("127.0.0.1", None, browser=True, read_only=False)
    assert served[1][1] == Options("127.0.0.1", 7, browser=False, read_only=True)
    assert "the connection is not encrypted" in pdj("web", "--host", "0.0.0.0").stderr
    pdj("web", "--local", "-n", "team")
    assert namespaces[-2:] == ["", "team"]
    done = pdj("web", "--socket", "w.sock")
    path = served[-1][1].socket
    assert path and path.is_absolute() and f"ssh -L 127.0.0.1:8700:{path} " in done.stdout


@pytest.mark.parametrize("other", [("--port", "1"), ("--host", "::1")])
def test_a_socket_is_instead_of_a_port(other: tuple[str, str]):
    done = pdj("web", "--socket", "w.sock", *other)
    assert (done.returncode, "--socket cannot be combined with --port or --host" in done.stderr) == (2, True)


def test_a_new_url_of_each_server_that_runs_is_printed(tmp_path: Path):
    assert "start one with `pdj web`" in pdj("web", "--url").stderr
    with announced(tmp_path / "state/web", "http://127.0.0.1:8700/") as folder:
        (url,) = pdj("web", "--url").stdout.splitlines()
        assert Sessions(folder).start(url.removeprefix("http://127.0.0.1:8700/#token="))
        assert pdj("web", "--url", "--port", "8700").stdout
        assert pdj("web", "--url", "--port", "8701").returncode == 1

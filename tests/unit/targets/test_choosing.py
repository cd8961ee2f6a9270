"""The remembered target: what commands use that do not say where their job is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.main import app
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobStore
from paddlejob.targets.choose import choose_target, is_plugin, selects_cluster
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.remembered import Remembered, read_remembered, remember, target_file
from paddlejob.targets.sync import SyncTarget
from tests.support.builders import NOON, document

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: first
clusters:
- {name: c, cluster: {server: "http://127.0.0.1:1"}}
users:
- {name: u, user: {token: t}}
contexts:
- {name: first, context: {cluster: c, user: u, namespace: own}}
- {name: second, context: {cluster: c, user: u}}
"""


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))


def test_without_a_choice_it_is_this_machine():
    assert isinstance(choose_target().target, LocalTarget)
    assert choose_target().default_namespace == "default"


def test_a_remembered_cluster_is_used_with_its_namespace_and_flags_still_win():
    remember(Remembered(cluster=True, context="second", namespace="team"))
    assert choose_target().default_namespace == "team"
    assert choose_target().flags("team") == " --context second"
    assert isinstance(choose_target(cluster=False).target, LocalTarget)
    assert choose_target(context="first").default_namespace == "own", "the namespace belongs to the other context"
    assert choose_target(cluster=True).default_namespace == "team"


def test_a_remembered_namespace_of_this_machine_does_not_apply_to_a_cluster():
    remember(Remembered(namespace="team"))
    assert choose_target().default_namespace == "team"
    assert choose_target(cluster=True).default_namespace == "own"


def test_commands_that_a_message_names_reach_this_machine_also_if_a_cluster_is_remembered():
    assert (LocalTarget().flags("default"), LocalTarget().flags("team")) == ("", " -n team")
    remember(Remembered(namespace="team"))
    assert (LocalTarget().flags("default"), LocalTarget().flags("team")) == (" -n default", "")
    assert LocalTarget().start_command("default") == "pdj run FILE -n default"
    remember(Remembered(cluster=True, namespace="team"))
    assert (LocalTarget().flags("default"), LocalTarget().flags("team")) == (" --local", " --local -n team")
    assert LocalTarget().start_command() == "pdj run FILE", "it always runs on this machine"


def test_this_machine_and_a_context_exclude_each_other():
    with pytest.raises(BadInput, match="--local and --context exclude each other"):
        choose_target(cluster=False, context="first")


@pytest.mark.parametrize("text", ["", "[]", '{"other": 1}', "\x00"])
def test_a_damaged_file_is_one_message(text: str):
    target_file().parent.mkdir(parents=True)
    target_file().write_text(text)
    with pytest.raises(BadInput, match="choose the target anew with `pdj target`"):
        read_remembered()
    assert LocalTarget().flags("default") == "", "a job that runs is not stopped by it"
    remember(Remembered())
    assert read_remembered() == Remembered()


def listed(*options: str) -> tuple[str, str]:
    done = CliRunner().invoke(app, ["list", *options])
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_a_list_shows_its_target_and_only_the_remembered_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PADDLEJOB_STATE", str(tmp_path / "state"))
    for namespace in ("default", "team"):
        made = document(f"of-{namespace}")
        made["metadata"]["namespace"] = namespace
        JobStore().begin(made, RunOptions(), NOON)[1].release()
    shown, target = listed()
    assert "of-default" in shown and "of-team" in shown
    assert target == "target: this machine, all namespaces; change it with `pdj target`\n"
    remember(Remembered(namespace="team"))
    shown, target = listed()
    assert "of-team" in shown and "of-default" not in shown
    assert "target: this machine, namespace team;" in target
    assert "of-default" in listed("-A")[0]
    assert "of-default" in listed("-n", "default")[0]
    assert listed("-o", "json")[1] == ""
    assert "of-team" in listed("--history")[0] and "of-default" not in listed("--history")[0]
    assert "target: this machine" in listed("--history")[1]


def test_a_job_that_does_not_exist_is_answered_with_a_close_name_or_a_short_list():
    for number in range(12):
        JobStore().begin(document(f"train-{number:02}"), RunOptions(), NOON)[1].release()
    with pytest.raises(BadInput, match=r"not found in namespace default; did you mean train-07\?$"):
        SyncTarget(LocalTarget()).job("default", "tran-07")
    with pytest.raises(BadInput, match=r"existing jobs: train-00, .*, train-09 and 2 more$"):
        SyncTarget(LocalTarget()).job("default", "zebra")


def test_the_remembered_target_reads_as_people_say_it(tmp_path: Path):
    assert str(Remembered()) == "this machine"
    assert str(Remembered(namespace="team")) == "this machine, namespace team"
    assert str(Remembered(cluster=True)) == "cluster (the current kubeconfig context)"
    assert str(Remembered(True, "west", "team")) == "cluster (context west), namespace team"
    assert read_remembered() == Remembered()
    remember(Remembered(True, "west", "team"))
    assert read_remembered() == Remembered(True, "west", "team")
    assert target_file() == tmp_path / "paddlejob/target.json"
    assert [one.name for one in target_file().parent.iterdir()] == ["target.json"]
    (tmp_path / "paddlejob/target.json").unlink()
    (tmp_path / "paddlejob").rmdir()
    (tmp_path / "paddlejob").touch()
    with pytest.raises(NotPossible, match=r"target\.json cannot be written: "):
        remember(Remembered())


def test_kubectl_as_a_plugin_always_means_the_cluster(monkeypatch: pytest.MonkeyPatch):
    assert (selects_cluster(None, ""), selects_cluster(True, ""), selects_cluster(False, "")) == (None, True, False)
    assert selects_cluster(None, "west") is True
    for name in ("kubectl-pdj", "kubectl-pdj.exe"):
        monkeypatch.setattr(sys, "argv", [f"/bin/{name}"])
        assert is_plugin() and selects_cluster(None, "") is True
    monkeypatch.setattr(sys, "argv", ["/bin/pdj"])
    assert not is_plugin()

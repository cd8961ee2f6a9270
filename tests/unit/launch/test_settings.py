"""The settings from the Job's environment, and the errors for a wrong one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paddlejob.launch.output import LaunchError
from paddlejob.launch.settings import read_settings, require_config
from tests.unit.launch.documents import ENVIRON


def test_the_variables_of_the_document_are_read():
    found = read_settings(ENVIRON, ["--config=x.py"])
    assert (found.job, found.namespace, found.config_dir) == ("paddle-cluster-job", "default", "recommendation")
    assert found.root == Path("/home/jobpath/paddle-cluster-job")
    assert (found.nic, found.port, found.ports, found.sparse_ports, found.trainers) == ("eth0", 7164, 2, 2, 3)
    assert found.threads == 1, "TRAINER_COUNT is not set in document 004"
    assert found.trainer_args == ("--config=x.py",)


@pytest.mark.parametrize(
    ("variable", "given", "field", "read"),
    [
        ("JOB_NAME", "other", "job", "other"),
        ("JOB_PATH", "/efs", "root", Path("/efs/paddle-cluster-job")),
        ("JOB_NAMESPACE", "team", "namespace", "team"),
        ("TRAIN_CONFIG_DIR", "quick_start", "config", Path("/home/jobpath/paddle-cluster-job/quick_start")),
        ("CONF_PADDLE_NIC", "ib0", "nic", "ib0"),
        ("CONF_PADDLE_PORT", "8000", "port", 8000),
        ("CONF_PADDLE_PORTS_NUM", "4", "ports", 4),
        ("CONF_PADDLE_PORTS_NUM_SPARSE", "0", "sparse_ports", 0),
        ("CONF_PADDLE_GRADIENT_NUM", "5", "trainers", 5),
        ("TRAINER_COUNT", "3", "threads", 3),
        ("JOB_WAIT_SECONDS", "30", "wait_seconds", 30),
    ],
)
def test_every_variable_has_its_effect(variable: str, given: str, field: str, read: object):
    assert getattr(read_settings(ENVIRON, []), field) != read
    assert getattr(read_settings({**ENVIRON, variable: given}, []), field) == read


@pytest.mark.parametrize(
    ("variable", "field", "default"),
    [
        ("CONF_PADDLE_NIC", "nic", "eth0"),
        ("CONF_PADDLE_PORT", "port", 7164),
        ("CONF_PADDLE_PORTS_NUM", "ports", 2),
        ("CONF_PADDLE_PORTS_NUM_SPARSE", "sparse_ports", 2),
        ("TRAINER_COUNT", "threads", 1),
        ("JOB_WAIT_SECONDS", "wait_seconds", 600),
    ],
)
def test_what_is_not_set_or_empty_has_a_default(variable: str, field: str, default: object):
    without = {name: value for name, value in ENVIRON.items() if name != variable}
    for environ in (without, {**ENVIRON, variable: ""}):
        assert getattr(read_settings(environ, []), field) == default


def test_the_namespace_is_that_of_the_pod_where_none_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "namespace").write_text("team\n")
    monkeypatch.setattr("paddlejob.launch.settings.SERVICE_ACCOUNT", tmp_path)
    assert read_settings({**ENVIRON, "JOB_NAMESPACE": ""}, []).namespace == "team"


@pytest.mark.parametrize("known", [{"PADDLEJOB_PEERS": "a,b,c,d"}, {"PADDLE_TRAINERS_NUM": "4"}])
def test_the_number_of_trainers_may_come_from_the_engine_or_the_operator(known: dict[str, str]):
    environ = {name: value for name, value in ENVIRON.items() if name != "CONF_PADDLE_GRADIENT_NUM"}
    assert read_settings({**environ, **known}, []).trainers == 4


@pytest.mark.parametrize("number", ["²", "-1", "3.0", " 3", "three", "0x3"])
def test_a_value_that_is_not_a_number_is_an_error_message(number: str):
    with pytest.raises(LaunchError, match=f"CONF_PADDLE_GRADIENT_NUM: {number} is not valid; set it to a whole number"):
        read_settings({**ENVIRON, "CONF_PADDLE_GRADIENT_NUM": number, "PADDLE_TRAINERS_NUM": "x"}, [])


def test_the_pods_connect_on_the_port_after_those_that_the_document_opens():
    assert read_settings(ENVIRON, []).rendezvous_port == 7168


def test_a_small_block_of_ports_still_leaves_the_rendezvous_port_free():
    few = {**ENVIRON, "CONF_PADDLE_PORTS_NUM": "1", "CONF_PADDLE_PORTS_NUM_SPARSE": "0"}
    assert read_settings(few, []).rendezvous_port == 7168


def test_all_errors_are_reported_at_once():
    with pytest.raises(LaunchError) as error:
        read_settings({"CONF_PADDLE_PORT": "http", "TRAINER_COUNT": "0"}, [])
    for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR", "CONF_PADDLE_PORT", "CONF_PADDLE_GRADIENT_NUM"):
        assert f"{name}: " in str(error.value)
    assert "TRAINER_COUNT: 0 is not valid; set it to a whole number, 1 or more" in str(error.value)
    assert error.value.exit_code == 2


def test_ports_beyond_65535_are_an_error():
    with pytest.raises(LaunchError, match=r"CONF_PADDLE_PORT: 65533 is too high.*use a lower port"):
        read_settings({**ENVIRON, "CONF_PADDLE_PORT": "65533"}, [])


def test_a_missing_config_directory_is_reported_with_the_existing_ones(tmp_path: Path):
    for name in ("0/data", "1/data", "output", "quick_start"):
        (tmp_path / "paddle-cluster-job" / name).mkdir(parents=True)
    with pytest.raises(LaunchError, match=r"TRAIN_CONFIG_DIR: no directory recommendation in .*; found quick_start$"):
        require_config(read_settings({**ENVIRON, "JOB_PATH": str(tmp_path)}, []))


def test_a_volume_that_is_not_mounted_is_named(tmp_path: Path):
    with pytest.raises(LaunchError, match="set JOB_PATH to the mount path of the shared volume"):
        require_config(read_settings({**ENVIRON, "JOB_PATH": str(tmp_path)}, []))


def test_the_launcher_as_a_program_ends_with_the_status_of_bad_settings():
    ran = subprocess.run(
        [sys.executable, "-m", "paddlejob.launch"], env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "JOB_NAME: not set; set it in the Job's env" in ran.stdout + ran.stderr) == (2, True)

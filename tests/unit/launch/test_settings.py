"""What the Job's environment says, and what is said about one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.launch.settings import read_settings, refuse_missing_config
from paddlejob.launch.words import LaunchError
from tests.unit.launch.documents import ENVIRON


def test_the_variables_of_the_document_are_read():
    found = read_settings(ENVIRON, ["--config=x.py"])
    assert (found.job, found.namespace, found.config_dir) == ("paddle-cluster-job", "default", "recommendation")
    assert found.root == Path("/home/jobpath/paddle-cluster-job")
    assert (found.nic, found.port, found.ports, found.sparse_ports, found.trainers) == ("eth0", 7164, 2, 2, 3)
    assert found.threads == 1, "TRAINER_COUNT is not set in document 004"
    assert found.passed_on == ("--config=x.py",)


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
def test_the_number_of_trainers_may_be_known_from_who_started_the_pod(known: dict[str, str]):
    environ = {name: value for name, value in ENVIRON.items() if name != "CONF_PADDLE_GRADIENT_NUM"}
    assert read_settings({**environ, **known}, []).trainers == 4


@pytest.mark.parametrize("number", ["²", "-1", "3.0", " 3", "three", "0x3"])
def test_what_is_no_number_is_said_not_thrown(number: str):
    with pytest.raises(LaunchError, match=f"CONF_PADDLE_GRADIENT_NUM: is {number}; set it to a whole number"):
        read_settings({**ENVIRON, "CONF_PADDLE_GRADIENT_NUM": number, "PADDLE_TRAINERS_NUM": "x"}, [])


def test_the_pods_keep_in_touch_on_the_port_behind_those_that_the_document_opens():
    assert read_settings(ENVIRON, []).meeting_port == 7168


def test_a_small_block_of_ports_still_leaves_the_meeting_port_free():
    few = {**ENVIRON, "CONF_PADDLE_PORTS_NUM": "1", "CONF_PADDLE_PORTS_NUM_SPARSE": "0"}
    assert read_settings(few, []).meeting_port == 7168


def test_everything_wrong_is_said_at_once():
    with pytest.raises(LaunchError) as told:
        read_settings({"CONF_PADDLE_PORT": "http", "TRAINER_COUNT": "0"}, [])
    for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR", "CONF_PADDLE_PORT", "CONF_PADDLE_GRADIENT_NUM"):
        assert f"{name}: is " in str(told.value)
    assert "TRAINER_COUNT: is 0; set it to a whole number, 1 or more" in str(told.value)
    assert told.value.status == 2


def test_ports_beyond_the_last_are_refused():
    with pytest.raises(LaunchError, match=r"CONF_PADDLE_PORT: is 65533.*use a lower one"):
        read_settings({**ENVIRON, "CONF_PADDLE_PORT": "65533"}, [])


def test_a_config_directory_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path):
    for name in ("0/data", "1/data", "output", "quick_start"):
        (tmp_path / "paddle-cluster-job" / name).mkdir(parents=True)
    with pytest.raises(LaunchError, match=r"TRAIN_CONFIG_DIR: is recommendation, .*; there is quick_start$"):
        refuse_missing_config(read_settings({**ENVIRON, "JOB_PATH": str(tmp_path)}, []))


def test_a_volume_that_is_not_mounted_is_named(tmp_path: Path):
    with pytest.raises(LaunchError, match="JOB_PATH should be where the shared volume is mounted"):
        refuse_missing_config(read_settings({**ENVIRON, "JOB_PATH": str(tmp_path)}, []))

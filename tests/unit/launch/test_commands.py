"""The command lines of 2016 and the environment for current Paddle, from the same variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlejob.launch.fleet_paddle import fleet_commands, fleet_ports, require_program
from paddlejob.launch.group import Group
from paddlejob.launch.legacy_paddle import find_legacy_paddle, join_flags, legacy_ports, server_flags, trainer_flags
from paddlejob.launch.output import LaunchError
from paddlejob.launch.settings import read_settings
from tests.unit.launch.documents import ADDRESSES, ENVIRON, PASSED_ON, SERVER, logged


def test_the_trainer_of_2016_gets_the_flags_of_the_documents_log_in_that_order():
    flags = trainer_flags(read_settings(ENVIRON, PASSED_ON), Group(ADDRESSES, 0))
    assert flags == [*logged(), "--num_gradient_servers=3"], "the last is named by the document's text, not in its log"


def test_the_server_of_2016_gets_what_the_document_names():
    assert server_flags(read_settings(ENVIRON, [])) == SERVER


def test_trainer_count_comes_from_the_environment_unless_an_argument_sets_it():
    settings = read_settings({**ENVIRON, "TRAINER_COUNT": "3"}, ["--use_gpu=0"])
    assert "--trainer_count=3" in trainer_flags(settings, Group(ADDRESSES, 2))


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["--config=a.py", "--use_gpu=0"], ["--config=a.py", "--use_gpu=0"]),
        (["--config", "a.py", "--use_gpu", "0"], ["--config=a.py", "--use_gpu=0"]),
        (["--verbose", "--job=x"], ["--verbose", "--job=x"]),
        (["--job=x", "--verbose"], ["--job=x", "--verbose"]),
        (["--start_pass", "-1"], ["--start_pass=-1"]),
        (["--config_args=a=1,b=2"], ["--config_args=a=1,b=2"]),
        (["--config_args", "a=1,b=2"], ["--config_args=a=1,b=2"]),
        (["--empty=", "--last"], ["--empty=", "--last"]),
    ],
)
def test_unknown_arguments_are_passed_to_the_trainer_in_every_spelling(given: list[str], passed_on: list[str]):
    assert join_flags(given) == passed_on
    flags = trainer_flags(read_settings(ENVIRON, given), Group(ADDRESSES, 0))
    begin = flags.index("--ports_num_for_sparse=2") + 1
    assert flags[begin : begin + len(passed_on)] == passed_on, "in their order, where the document's log has them"
    _, trainer = fleet_commands(read_settings(ENVIRON, given), Group(ADDRESSES, 0), {})
    assert trainer.argv[2:] == given, "the program of current Paddle gets them unchanged"


def test_an_argument_cannot_override_the_identity_of_the_pod():
    """The last of two flags of one name is the one that counts."""
    flags = trainer_flags(read_settings(ENVIRON, ["--trainer_id=7", "--save_dir=/tmp"]), Group(ADDRESSES, 1))
    last = dict(flag.split("=", 1) for flag in flags)
    assert (last["--trainer_id"], last["--save_dir"]) == ("1", "/home/jobpath/paddle-cluster-job/output")


def test_ipv6_addresses_are_plain_in_pservers_and_bracketed_before_a_port():
    group = Group(("fd00::9", "fd00::10"), 1)
    assert "--pservers=fd00::9,fd00::10" in trainer_flags(read_settings(ENVIRON, []), group)
    server, trainer = fleet_commands(read_settings(ENVIRON, []), group, {})
    assert server.environ["PADDLE_PSERVERS_IP_PORT_LIST"] == "[fd00::9]:7164,[fd00::10]:7164"
    assert server.environ["PADDLE_GLOO_HTTP_ENDPOINT"] == "[fd00::9]:7166"
    assert trainer.environ["PADDLE_CURRENT_ENDPOINT"] == "[fd00::10]:7165"
    assert server.environ["POD_IP"] == "[fd00::10]", "Paddle looks for POD_IP:PADDLE_PORT in the list"


def test_a_pod_listens_on_the_ports_of_its_server_and_the_first_pod_also_on_that_of_gloo():
    settings = read_settings(ENVIRON, [])
    assert list(legacy_ports(settings)) == [7164, 7165, 7166, 7167]
    assert fleet_ports(settings, Group(ADDRESSES, 0)) == [7164, 7166]
    assert fleet_ports(settings, Group(ADDRESSES, 1)) == [7164]


def test_the_paddle_command_of_current_wheels_is_not_mistaken_for_that_of_2016(tmp_path: Path):
    for name, text in (("old", 'case $1 in "pserver") exec x;; esac'), ("new", "echo version")):
        (tmp_path / name).mkdir()
        script = tmp_path / name / "paddle"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
    assert find_legacy_paddle(str(tmp_path / "old")) == str(tmp_path / "old" / "paddle")
    assert find_legacy_paddle(str(tmp_path / "new")) == ""
    assert find_legacy_paddle(os.devnull) == ""


def test_for_current_paddle_the_same_variables_become_the_environment_that_paddle_reads():
    settings = read_settings(ENVIRON, ["--num_passes=2"])
    server, trainer = fleet_commands(settings, Group(ADDRESSES, 1), {"PATH": "/bin"})
    assert server.argv[1:] == trainer.argv[1:] == ["train.py", "--num_passes=2"]
    servers = "192.168.129.66:7164,192.168.129.71:7164,192.168.223.143:7164"
    for role in (server.environ, trainer.environ):
        assert role["PATH"] == "/bin"
        assert role["PADDLE_PSERVERS_IP_PORT_LIST"] == servers
        assert role["PADDLE_TRAINER_ENDPOINTS"] == servers.replace(":7164", ":7165")
        assert role["PADDLE_GLOO_HTTP_ENDPOINT"] == "192.168.129.66:7166"
        assert role["PADDLE_TRAINERS_NUM"] == "3"
        assert role["POD_IP"] == "192.168.129.71"
        assert role["OUTPUT_DIR"] == "/home/jobpath/paddle-cluster-job/output"
    assert (server.environ["TRAINING_ROLE"], server.environ["PADDLE_PORT"]) == ("PSERVER", "7164")
    assert (trainer.environ["TRAINING_ROLE"], trainer.environ["PADDLE_PORT"]) == ("TRAINER", "7165")
    assert trainer.environ["PADDLE_TRAINER_ID"] == "1"


def test_a_config_directory_of_2016_without_its_paddle_is_an_error_that_names_the_missing_program(tmp_path: Path):
    config = tmp_path / "paddle-cluster-job" / "recommendation"
    config.mkdir(parents=True)
    (config / "trainer_config.py").touch()
    with pytest.raises(LaunchError, match=r"no train.py, .*\(found trainer_config.py\).*the `paddle` command of 2016"):
        require_program(read_settings({**ENVIRON, "JOB_PATH": str(tmp_path)}, []))

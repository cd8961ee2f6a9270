"""The file cluster.yaml: written, loaded, edited, and invalid in every way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlejob.cloud.aws.config.assets import Assets
from paddlejob.errors import BadInput, NotPossible

from .kinds import NAMED, Configured, Pdj


def test_what_init_writes_is_what_load_reads(tmp_path: Path, configured: Configured) -> None:
    config = configured(
        clusterName="on",
        keyName="my key: 1",
        kmsKeyArn="arn:aws:kms:us-west-2:123456789012:key/abc",
        workerInstanceType="g4dn.xlarge",
        workerSpot=True,
        workerCount=2,
    )
    Assets(tmp_path).init(config)
    assert Assets(tmp_path).load() == config


def test_init_never_overwrites_an_edited_file(tmp_path: Path, configured: Configured) -> None:
    Assets(tmp_path).init(configured())
    with pytest.raises(BadInput, match="already exists; edit it, or overwrite it with --replace"):
        Assets(tmp_path).init(configured())


def test_scaling_changes_one_number_and_no_comment(tmp_path: Path, configured: Configured) -> None:
    assets = Assets(tmp_path)
    assets.init(configured())
    before = assets.cluster_yaml.read_text().replace("workerCount: 1\n", "workerCount:   1   # few\n", 1)
    assets.cluster_yaml.write_text(before)
    after = assets.with_setting("workerCount", 3)
    assert after == before.replace("workerCount:   1   # few", "workerCount: 3   # few")


def test_scaling_adds_the_number_where_there_was_none(tmp_path: Path) -> None:
    assets = Assets(tmp_path)
    assets.cluster_yaml.write_text(GOOD)
    assert assets.with_setting("workerCount", 3) == f"{GOOD}workerCount: 3\n"


def test_a_file_that_cannot_be_changed_by_a_program_is_left_to_the_user(tmp_path: Path) -> None:
    assets = Assets(tmp_path)
    assets.cluster_yaml.write_text("{clusterName: paddle, region: us-west-2, availabilityZones: [us-west-2a]}\n")
    with pytest.raises(BadInput, match=r"set `workerCount: 3` and run `pdj aws up`"):
        assets.with_setting("workerCount", 3)


GOOD = "clusterName: paddle\nregion: us-west-2\navailabilityZones: [us-west-2a]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [\n", ":2:1: invalid YAML: did not find expected node content"),
        ("clusterName: paddle\n\tregion: us-west-2\n", ":2:1: a tab indents this line; YAML allows only spaces"),
        (f"{GOOD}---\n{GOOD}", " contains several documents; keep one"),
        ("clusterName: !!python/object/apply:os.getpid []\n", ":1:14: the tag !!python/object/apply:os.getpid has"),
        ("", " contains no settings; create it with `pdj aws init`"),
        ("- clusterName: paddle\n", " contains no settings"),
        ("just words\n", " contains no settings"),
        (f"{GOOD}region: us-east-1\n", ":4:1: duplicate key `region`; remove one of them"),
        (f"{GOOD}1: 2\n", ":4: 1: unknown setting; remove it"),
        (f"{GOOD}cluster_name: paddle\n", ":4: cluster_name: unknown setting; did you mean clusterName?"),
        (f"{GOOD}workerCount:\n", ":4: workerCount has no value; set one or remove the line"),
    ],
)
def test_a_broken_file_is_reported_in_one_line_with_its_position(tmp_path: Path, text: str, expected: str) -> None:
    Assets(tmp_path).cluster_yaml.write_text(text)
    with pytest.raises(BadInput) as rejected:
        Assets(tmp_path).load()
    assert str(rejected.value).startswith(f"{tmp_path}/cluster.yaml{expected}")
    assert "\n" not in str(rejected.value)


def test_all_faults_of_a_file_come_at_once_and_each_with_its_line(tmp_path: Path) -> None:
    text = GOOD.replace("us-west-2a", "us-east-1a") + "# nodes\nworkerCount: 11\nworkerSpot: maybe\n"
    Assets(tmp_path).cluster_yaml.write_text(text)
    with pytest.raises(BadInput) as rejected:
        Assets(tmp_path).load()
    positions = [
        line.removeprefix(f"{tmp_path}/cluster.yaml:").split(": ")[:2] for line in str(rejected.value).split("\n")
    ]
    assert positions == [["3", "availabilityZones"], ["5", "workerCount"], ["6", "workerSpot"]]


def test_a_file_that_cannot_be_read_is_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="run `pdj aws init` first"):
        Assets(tmp_path).load()
    Assets(tmp_path).cluster_yaml.write_bytes(b"clusterName: \xff\n")
    with pytest.raises(BadInput, match="not UTF-8: invalid start byte at byte 13"):
        Assets(tmp_path).load()
    Assets(tmp_path).cluster_yaml.unlink()
    Assets(tmp_path).cluster_yaml.mkdir()
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        Assets(tmp_path).load()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, configured: Configured) -> None:
    (tmp_path / "taken").write_text("a file where a directory should be")
    with pytest.raises(NotPossible, match="cannot be written: "):
        Assets(tmp_path / "taken").init(configured())
    Assets(tmp_path).init(configured())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.yaml", "taken"]


def test_others_can_read_the_file_and_it_is_not_executable(tmp_path: Path, configured: Configured) -> None:
    before = os.umask(0o022)
    try:
        Assets(tmp_path).init(configured())
    finally:
        os.umask(before)
    assert Assets(tmp_path).cluster_yaml.stat().st_mode & 0o777 == 0o644


def test_init_lets_only_the_callers_address_reach_the_api_if_it_is_given(
    pdj: Pdj, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not asked for at any host."""
    output = pdj("init", *NAMED)
    assert "`curl https://checkip.amazonaws.com` prints it" in output
    assert Assets(tmp_path).load().api_access_cidrs == ["0.0.0.0/0"]
    assert "checkip" not in pdj("init", *NAMED, "--replace", "--my-address=203.0.113.7")
    assert Assets(tmp_path).load().api_access_cidrs == ["203.0.113.7/32"]
    monkeypatch.setenv("PDJ_MY_ADDRESS", "203.0.113.9")
    pdj("init", *NAMED, "--replace")
    assert Assets(tmp_path).load().api_access_cidrs == ["203.0.113.9/32"]
    with pytest.raises(BadInput, match=r"192\.168\.1\.7/32"):
        pdj("init", *NAMED, "--replace", "--my-address=192.168.1.7")


def test_a_file_with_three_settings_is_the_cluster_that_init_writes(
    pdj: Pdj, configured: Configured, tmp_path: Path
) -> None:
    pdj("init", *NAMED)
    assert Assets(tmp_path).load() == configured()


def test_init_leaves_space_to_scale_whatever_it_begins_with(pdj: Pdj, tmp_path: Path) -> None:
    found = []
    for workers in (2, 10, 11):
        pdj("init", *NAMED, f"--workers={workers}", "--instance-type=g4dn.xlarge", "--spot", "--replace")
        config = Assets(tmp_path).load()
        found.append((config.worker_count, config.max_worker_count))
        assert (config.worker_instance_type, config.worker_spot) == ("g4dn.xlarge", True)
    assert found == [(2, 10), (10, 10), (11, 11)]


def test_init_writes_the_optional_settings_that_it_is_given(pdj: Pdj, tmp_path: Path) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1"
    pdj("init", *NAMED, f"--kms-key-arn={key}", "--key-name=mine", "--external-dns-name=paddle")
    config = Assets(tmp_path).load()
    assert (config.kms_key_arn, config.key_name, config.external_dns_name) == (key, "mine", "paddle")

"""What a user who has never seen AWS gets wrong: each mistake is answered with one message that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.aws.app import app
from paddlejob.errors import PaddleJobError

VALID = "clusterName: mine\nregion: us-west-2\navailabilityZones: [us-west-2a]\n"
DATA = "--cluster theirs --region us-west-2"
ON_A_CLUSTER = ("validate", "up", "status", "scale 2", "upgrade", "kubeconfig", "token", "storage", "destroy")


@pytest.fixture
def asks(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(VALID)
    return tmp_path


@pytest.fixture
def without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def rejected(directory: Path, command: str) -> str:
    """Run it, and return the error, which `main` prints; nothing else is said."""
    options = [] if command.startswith("data detach") else ["--assets", str(directory)]
    result = CliRunner().invoke(app, [*command.split(), *options])
    assert isinstance(result.exception, PaddleJobError), result.output
    assert result.output == "", "a second message"
    return str(result.exception)


@pytest.mark.usefixtures("without_credentials")
@pytest.mark.parametrize("command", [*ON_A_CLUSTER, f"data attach {DATA}", f"data detach {DATA}"])
def test_without_credentials_it_says_how_to_sign_in(asks: Path, command: str) -> None:
    text = rejected(asks, command)
    assert text.startswith("no AWS credentials (")
    assert "run `aws configure`, or set AWS_PROFILE" in text


@pytest.mark.usefixtures("without_credentials")
def test_the_policy_needs_no_credentials_but_then_the_account(asks: Path) -> None:
    assert rejected(asks, "policy").startswith("--account-id is missing, and there are no credentials to ask AWS with")
    assert "is not an AWS account id; use its 12 digits" in rejected(asks, "policy --account-id mine")
    result = CliRunner().invoke(app, ["policy", "--account-id", "123456789012", "--assets", str(asks)])
    assert result.exit_code == 0


@pytest.mark.usefixtures("without_credentials")
def test_templates_are_rendered_without_credentials_and_it_says_what_was_guessed(asks: Path) -> None:
    result = CliRunner().invoke(app, ["render", "--assets", str(asks)])
    assert "AWS was not asked (no AWS credentials): assuming us-west-2b as the second zone" in result.output


@pytest.mark.parametrize("command", [*ON_A_CLUSTER, "render", "policy"])
def test_without_a_cluster_file_it_says_how_to_write_one(tmp_path: Path, command: str) -> None:
    assert "no such file; run `pdj aws init` first, or pass its directory with --assets" in rejected(tmp_path, command)


@pytest.mark.parametrize("command", [*ON_A_CLUSTER, "render", "policy"])
@pytest.mark.parametrize(
    ("broken", "remedy"),
    [
        (VALID.replace("region", "regoin"), "did you mean region?"),
        (VALID.replace(": mine", ": [mine"), "close the bracket and separate values by commas"),
        (VALID.replace("mine", "my_cluster"), 'use letters, digits and "-" (no "_")'),
        ("", "create it with `pdj aws init`"),
    ],
    ids=["misspelt", "not closed", "bad name", "empty"],
)
def test_a_broken_cluster_file_is_rejected_by_each_verb(asks: Path, command: str, broken: str, remedy: str) -> None:
    (asks / "cluster.yaml").write_text(broken)
    assert remedy in rejected(asks, command)


@pytest.mark.usefixtures("without_credentials")
@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ("--cluster theirs", "--region is missing; name the region of the cluster, or set AWS_REGION"),
        ("--cluster theirs --region us-west-9", "EKS is not available in 'us-west-9'; did you mean us-west-2?"),
        ("--cluster theirs --region oregon", "'oregon' is not a region; use one such as us-west-2"),
        ("--cluster their_s --region us-west-2", 'use letters, digits and "-" (no "_")'),
    ],
)
def test_a_cluster_of_others_has_to_be_named_rightly(tmp_path: Path, options: str, remedy: str) -> None:
    for verb in ("attach", "detach"):
        assert remedy in rejected(tmp_path, f"data {verb} {options}")


@pytest.mark.usefixtures("made")
def test_a_file_system_that_is_not_there_is_not_attached(tmp_path: Path) -> None:
    text = rejected(tmp_path, f"data attach {DATA} --file-system-id fs-12345678")
    assert "no file system fs-12345678 in us-west-2; omit it to create one" in text
    assert "use fs-..., or omit it" in rejected(tmp_path, f"data attach {DATA} --file-system-id mine")


@pytest.mark.parametrize(
    ("text", "profile", "remedy"),
    [
        ("nonsense [", "", "check --profile, the AWS configuration file and the environment variables AWS_..."),
        ("[profile a]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile=b\n", "a", '"a" does not exist; check --profile'),
        ("", "absent", "choose one that `aws configure list-profiles` shows"),
    ],
)
@pytest.mark.usefixtures("without_credentials")
def test_a_configuration_of_aws_that_cannot_be_used_is_said_to_be_the_cause(
    asks: Path, monkeypatch: pytest.MonkeyPatch, text: str, profile: str, remedy: str
) -> None:
    (asks / "config").write_text(text)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(asks / "config"))
    assert remedy in rejected(asks, f"status --profile {profile}" if profile else "status")

"""Packing a directory: what is shipped, and that the same files always give the same archive."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from paddlejob.code import archive as archives
from paddlejob.code.archive import pack, unpack
from paddlejob.errors import BadInput, NotPossible


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in {
        "train.py": "import helper",
        "lib/helper.py": "",
        "data/words.txt": "words",
        ".env": "TOKEN=secret",
        ".git/config": "",
        "lib/__pycache__/helper.pyc": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_secrets_and_caches_are_left_out_and_named(project: Path):
    packed = pack(str(project))
    assert packed.files == ("data/words.txt", "lib/helper.py", "train.py")
    assert packed.ignored == (".git/", "lib/__pycache__/")
    assert packed.secret == (".env",)


def test_ignore_files_work_as_in_git_at_every_level(project: Path):
    (project / ".gitignore").write_text("*.txt\n!keep.txt\n/lib/\n")
    (project / "data" / "keep.txt").write_text("")
    (project / "data" / ".gitignore").write_text("!words.txt\n")
    packed = pack(str(project))
    assert packed.files == (".gitignore", "data/.gitignore", "data/keep.txt", "data/words.txt", "train.py")


def test_pdjignore_decides_after_gitignore_and_can_ship_a_secret_on_purpose(project: Path):
    (project / ".gitignore").write_text("train.py\n")
    (project / ".pdjignore").write_text("!train.py\n!.env\ndata/\n")
    assert {"train.py", ".env"} <= set(pack(str(project)).files)
    assert "data/" in pack(str(project)).ignored


def test_the_same_files_give_the_same_archive_wherever_and_whenever(project: Path, tmp_path: Path):
    first = pack(str(project))
    copy = tmp_path / "copy"
    project.rename(copy)
    os.utime(copy / "train.py", (1, 1))
    (copy / "train.py").chmod(0o600)
    assert pack(str(copy)).content == first.content
    (copy / "train.py").write_text("import helper  # edited")
    assert pack(str(copy)).digest != first.digest
    assert len(first.digest) == 16


def test_what_was_packed_is_what_is_unpacked(project: Path, tmp_path: Path):
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "data/link").symlink_to("../lib/helper.py")
    out = tmp_path / "out"
    out.mkdir()
    assert unpack(pack(str(project)).content, out) == 5
    assert (out / "train.py").read_text() == "import helper"
    assert os.access(out / "run.sh", os.X_OK)
    assert not os.access(out / "train.py", os.X_OK)
    assert (out / "data/link").readlink() == Path("../lib/helper.py")


def test_a_directory_that_is_too_large_is_rejected_with_its_largest_files(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archives, "MOST_BYTES", 10_000)
    for number in range(12):
        (project / f"model-{number:02}.bin").write_bytes(os.urandom(2000 + number))
    with pytest.raises(BadInput) as caught:
        pack(str(project))
    lines = str(caught.value).splitlines()
    assert "has more than 9.8 KiB packed; leave data and models out with .pdjignore" in lines[0]
    assert [line.split()[-1] for line in lines[1:]] == [f"model-{number:02}.bin" for number in range(11, 1, -1)]


@pytest.mark.parametrize(
    "name",
    [
        ".git/HEAD", ".hg/x", ".svn/x", "a/__pycache__/x.py", "a.pyc", "a.pyo", ".venv/x", "venv/x", "node_modules/x",
        ".ipynb_checkpoints/x", ".mypy_cache/x", ".ruff_cache/x", ".pytest_cache/x", ".DS_Store",
    ],
)  # fmt: skip
def test_caches_and_environments_stay_here_unless_pdjignore_says_otherwise(name: str, tmp_path: Path):
    write(tmp_path, "train.py", name)
    (tmp_path / ".gitignore").write_text("!*\n")
    assert pack(str(tmp_path)).files == (".gitignore", "train.py")
    ship_anyway(tmp_path, name)
    assert set(pack(str(tmp_path)).files) == {".gitignore", ".pdjignore", name, "train.py"}


@pytest.mark.parametrize(
    "name",
    [
        ".env", ".env.local", ".envrc", "a/server.pem", "server.key", "id_rsa", "id_rsa.pub", "id_ed25519", "id_ecdsa",
        ".netrc", ".git-credentials", "kubeconfig", "a/kubeconfig.yaml", ".docker/config.json", ".kube/config",
        ".aws/credentials", ".ssh/x", ".kaggle/kaggle.json", "kaggle.json", "a/credentials.json", "cert.p12",
        ".huggingface/token", ".cache/huggingface/token", ".config/gcloud/x", "terraform.tfstate", ".npmrc",
        "cert.pfx", ".pypirc", "prod.env", ".ENV", "ID_RSA", "Kubeconfig", "a/SERVER.KEY", ".streamlit/secrets.toml",
        "rclone.conf", ".modelscope/credentials/x", "a.jks", "a.keystore", "a.kdbx", "a.ppk", "id_dsa", "_netrc",
        ".pgpass", ".my.cnf", ".htpasswd", ".s3cfg", ".boto", ".vault-token", ".dockercfg", ".azure/x", ".gcloud/x",
        "prod.kubeconfig", ".gnupg/x", ".kaggle/x", ".hf_token", "hf_token", "hf_token.txt", "client_secret_1.json",
        "service-account-1.json", "service_account.json", "prod.tfvars", ".databrickscfg", ".ossutilconfig",
    ],
)  # fmt: skip
def test_what_may_be_secret_is_never_shipped_but_on_purpose(name: str, tmp_path: Path):
    """Not even if .gitignore takes it back, as a list of what is wanted does."""
    write(tmp_path, "train.py", name)
    (tmp_path / ".gitignore").write_text("*\n!*/\n!*\n")
    packed = pack(str(tmp_path))
    assert packed.files == (".gitignore", "train.py")
    assert [one for one in packed.secret if name.startswith(one)], "it is named"
    ship_anyway(tmp_path, name)
    assert set(pack(str(tmp_path)).files) == {".gitignore", ".pdjignore", name, "train.py"}


def ship_anyway(root: Path, name: str) -> None:
    folders = [f"!{parent}/" for parent in Path(name).parents if str(parent) != "."]
    (root / ".pdjignore").write_text("\n".join([*folders, f"!{name}"]))


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQ", True),
        ("x = 1\n-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED", True),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", True),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdG", True),
        ('{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQ"}', True),
        ('["-----BEGIN RSA PRIVATE KEY-----\\n",\n    "' + 64 * "M" + '\\n"]', True),
        ('"-----BEGIN PRIVATE KEY-----"\n    "' + 64 * "M" + '"', True),
        ('{"inner": "{\\"key\\": \\"-----BEGIN PRIVATE KEY-----\\\\nMIIEvQ"}', True),
        (2 * 1024 * 1024 * "x" + "-----BEGIN PRIVATE KEY-----\nMIIEvQ", True),
        ("\ufeff-----BEGIN PRIVATE KEY-----\nMIIEvQ".encode("utf-16-le").decode("latin-1"), True),
        ('pem = "-----BEGIN PRIVATE KEY-----\\n" + body', False),
        ('if text.startswith("-----BEGIN PRIVATE KEY-----"):', False),
        ("-----BEGIN CERTIFICATE-----\nMIIEvQ", False),
    ],
)
def test_a_file_that_holds_a_private_key_is_left_out_whatever_its_name(content: str, secret: bool, tmp_path: Path):
    write(tmp_path, "train.py")
    (tmp_path / "settings.json").write_bytes(content.encode("latin-1"))
    packed = pack(str(tmp_path))
    assert packed.secret == (("settings.json",) if secret else ())
    assert ("settings.json" in packed.files) is not secret
    ship_anyway(tmp_path, "settings.json")
    assert "settings.json" in pack(str(tmp_path)).files


def test_packing_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """458 MiB took 10 s and 1.4 GiB of memory before they were rejected."""
    monkeypatch.setattr(archives, "MOST_BYTES", 100_000)
    with (tmp_path / "data").open("wb") as file:
        for _ in range(100):
            file.write(os.urandom(100_000))
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match=r"has more than 97\.7 KiB packed; leave data"):
            pack(str(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_patterns_of_a_directory_match_below_it_and_the_innermost_decides(tmp_path: Path):
    write(tmp_path, "a/data/x.bin", "a/x.bin", "b/x.bin", "train.py")
    (tmp_path / "a/.pdjignore").write_text("/data/\n")
    (tmp_path / ".pdjignore").write_text("b/\n")
    packed = pack(str(tmp_path))
    assert packed.files == (".pdjignore", "a/.pdjignore", "a/x.bin", "train.py")
    assert packed.ignored == ("a/data/", "b/")


def test_a_pipe_is_not_shipped(tmp_path: Path):
    write(tmp_path, "train.py")
    os.mkfifo(tmp_path / "pipe")
    assert pack(str(tmp_path)).files == ("train.py",)


def test_a_name_that_is_not_text_is_reported(tmp_path: Path):
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("")
    with pytest.raises(NotPossible, match=r"is not UTF-8; rename or remove it"):
        pack(str(tmp_path))
    (tmp_path / os.fsdecode(b"caf\xe9.py")).rename(tmp_path / "bell\x07.py")
    assert pack(str(tmp_path)).files == ("bell\x07.py",)


@pytest.mark.parametrize("target", ["/etc/passwd", "../elsewhere", "sub/../../elsewhere"])
def test_a_link_out_of_the_directory_is_rejected(target: str, tmp_path: Path):
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(BadInput, match="copy the file, or leave the link out"):
        pack(str(tmp_path))


@pytest.mark.parametrize(("limit", "fits"), [(2000, True), (1999, False)])
def test_files_that_are_too_large_together_are_rejected_before_they_are_packed(
    limit: int, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archives, "MOST_UNPACKED", limit)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    if fits:
        assert pack(str(tmp_path)).files == ("a", "b")
        return
    with pytest.raises(BadInput, match=r"has 2\.0 KiB, more than 2\.0 KiB; leave data"):
        pack(str(tmp_path))


def test_an_archive_of_exactly_the_limit_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_bytes(os.urandom(3000))
    size = len(pack(str(tmp_path)).content)
    monkeypatch.setattr(archives, "MOST_BYTES", size)
    assert len(pack(str(tmp_path)).content) == size
    monkeypatch.setattr(archives, "MOST_BYTES", size - 1)
    with pytest.raises(BadInput, match=r"has more than .* KiB packed"):
        pack(str(tmp_path))


def test_sizes_are_shown_in_mebibytes_from_one_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_bytes(b"x" * 2**20)
    (tmp_path / "b").write_bytes(b"x" * (2**20 - 1024))
    monkeypatch.setattr(archives, "MOST_UNPACKED", 10)
    with pytest.raises(BadInput) as caught:
        pack(str(tmp_path))
    assert [line.split() for line in str(caught.value).splitlines()[1:]] == [
        ["1.0", "MiB", "a"],
        ["1023.0", "KiB", "b"],
    ]


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_text("x")])
def test_what_is_no_directory_with_files_is_rejected(tmp_path: Path, make: object):
    make(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises(BadInput, match=r"code.*x (is|has) "):
        pack(str(tmp_path / "x"))

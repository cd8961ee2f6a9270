"""Settings in a file of the user: defaults, where they lie, and how a wrong one is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.api.devices import gpus as of_gpus
from paddlejob.client.settings import Settings, default_image, read_settings, settings_file
from paddlejob.errors import BadInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def settings(text: str) -> Settings:
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(text)
    return read_settings()


def test_settings_have_defaults_and_lie_where_a_user_keeps_settings(home: Path, monkeypatch: pytest.MonkeyPatch):
    assert settings_file() == home / ".config/paddlejob/config.toml"
    assert (read_settings(), read_settings().most_bytes) == (Settings("", "", 10, "2Gi"), 2 << 30)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "x"))
    assert settings_file() == home / "x/paddlejob/config.toml"
    assert settings('image = "a"\ngpu_image = "b"\nkeep_runs = 0\nkeep_runs_size = "5Mi"') == Settings(
        "a", "b", 0, "5Mi"
    )
    for unit, size in (("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("Ti", 1 << 40)):
        assert settings(f'keep_runs_size = "3{unit}"').most_bytes == 3 * size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imag = 1", "imag is not a setting; known are image, gpu_image, keep_runs, keep_runs_size"),
        ("image = 1", "image must be text in quotes"),
        ("keep_runs = -1", "keep_runs must be a number, 0 or more"),
        ("keep_runs = true", "keep_runs must be a number, 0 or more"),
        ('keep_runs = "1"', "keep_runs must be a number, 0 or more"),
        ('keep_runs_size = "2G"', "keep_runs_size must be a size, such as '2Gi' or '500Mi'"),
        ("x", "cannot be read: "),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_how_to_write_it(text: str, message: str):
    with pytest.raises(BadInput, match=message):
        settings(text)


def test_the_image_of_a_program_is_that_of_the_settings_else_the_paddle_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("paddlejob.client.settings.paddle_version", lambda: "3.9.9")
    assert default_image(None) == "paddlepaddle/paddle:3.9.9"
    with pytest.raises(BadInput, match=r"image is missing; .* set `gpu_image` in"):
        default_image(of_gpus(1))
    settings('image = "cpu:1"\ngpu_image = "gpu:1"')
    assert (default_image(None), default_image(of_gpus(2))) == ("cpu:1", "gpu:1")
    settings("")
    monkeypatch.setattr("paddlejob.client.settings.paddle_version", lambda: "")
    with pytest.raises(BadInput, match="set `image` in"):
        default_image(None)

"""Training in a locale whose encoding lacks what the program prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.pdj import START, Pdj

LINE = "训练ѵ"
"""Chinese, and a letter that GBK lacks."""
WITHOUT_UTF8 = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Python then takes the encoding of the locale, also that of C."""


@pytest.mark.parametrize(
    ("language", "encoding", "program"),
    [
        ("zh_CN", "GBK", "训练.py"),
        ("de_DE", "ISO-8859-1", "größe.py"),
        ("C", "ASCII", "train.py"),
    ],
)
def test_a_line_that_the_locale_cannot_show_is_escaped_and_ends_no_job(
    pdj: Pdj, tmp_path: Path, language: str, encoding: str, program: str
):
    name = language if language == "C" else made_locale(tmp_path, language, encoding)
    environment = {**pdj.environment, **WITHOUT_UTF8, "LOCPATH": str(tmp_path), "LC_ALL": name}
    file = os.fsdecode(program.encode(encoding))
    (pdj.folder / file).write_text(f"import sys; sys.stdout.buffer.write({(LINE + chr(10)).encode()!r})")
    run = [*START, "run", file, "--name", "train"]
    done = subprocess.run(run, env=environment, cwd=pdj.folder, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert LINE.encode(encoding, "backslashreplace") in done.stdout
    assert pdj.status("train").phase == "Completed"


def made_locale(directory: Path, language: str, encoding: str) -> str:
    name = f"{language}.{encoding}"
    if not shutil.which("localedef"):
        pytest.skip("localedef is missing; install the Debian package locales")
    made = subprocess.run(
        ["localedef", "-i", language, "-f", encoding, str(directory / name)], capture_output=True, text=True
    )
    if not (directory / name).exists():
        pytest.skip(f"localedef has no {name}; install the Debian package locales: {made.stderr.strip()}")
    return name

"""`--header`: each part of a CSV file starts with the header, which is not counted as a record."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paddlejob.cli.verbs.data import app
from paddlejob.data import split
from paddlejob.errors import BadInput

ROWS = [f"{n},{n * n}\n" for n in range(10)]


def csv(path: Path, rows: list[str] = ROWS, header: str = "n,square\n") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(header + "".join(rows))
    return path


def parts(dest: Path, name: str, count: int) -> list[list[str]]:
    return [(dest / f"{part}/data/{name}").read_text().splitlines(keepends=True) for part in range(count)]


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_part_starts_with_the_header_and_counts_only_rows(tmp_path: Path, shuffle: bool) -> None:
    made = split(str(csv(tmp_path / "in.csv")), str(tmp_path / "out"), 3, shuffle=shuffle, header=1)
    found = parts(tmp_path / "out", "in.csv", 3)
    assert {part[0] for part in found} == {"n,square\n"}
    rows = [row for part in found for row in part[1:]]
    assert sorted(rows) == ROWS and (rows == ROWS) is not shuffle
    assert [part.records for part in made.parts] == [3, 3, 4] and made.request["header"] == 1
    assert [part.bytes for part in made.parts] == [sum(map(len, part)) for part in found]
    assert split(str(tmp_path / "in.csv"), str(tmp_path / "out"), 3, shuffle=shuffle, header=1).kept == (0, 1, 2)


def test_the_command_repeats_one_line_or_several(tmp_path: Path) -> None:
    source = str(csv(tmp_path / "in.csv", header="# squares\nn,square\n"))
    for options, head in ((["--header"], 1), (["--header-lines", "2"], 2)):
        ran = CliRunner().invoke(app, ["split", source, f"{tmp_path}/{head}", "--parts", "2", *options])
        assert ran.exit_code == 0, ran.output
        assert [part[:head] for part in parts(tmp_path / str(head), "in.csv", 2)] == [
            ["# squares\n", "n,square\n"][:head]
        ] * 2


def test_files_keep_their_own_headers_and_a_compressed_one_too(tmp_path: Path) -> None:
    csv(tmp_path / "in/a.csv", ROWS[:2], "a\n")
    (tmp_path / "in/b.csv.gz").write_bytes(gzip.compress(("b\n" + "".join(ROWS[2:])).encode()))
    (tmp_path / "in/empty.csv").touch()
    split(str(tmp_path / "in"), str(tmp_path / "out"), 2, header=1)
    assert (tmp_path / "out/0/data/a.csv").read_text() == "a\n" + "".join(ROWS[:2])
    assert parts(tmp_path / "out", "b.csv", 2) == [["b\n", *ROWS[2:5]], ["b\n", *ROWS[5:]]]


def test_shuffled_files_share_one_header_or_are_rejected(tmp_path: Path) -> None:
    csv(tmp_path / "in/a.csv", ROWS[:5])
    csv(tmp_path / "in/b.csv", ROWS[5:])
    split(str(tmp_path / "in"), str(tmp_path / "out"), 2, shuffle=True, header=1)
    found = parts(tmp_path / "out", "shuffled.csv", 2)
    assert sorted(row for part in found for row in part) == sorted([*ROWS, "n,square\n", "n,square\n"])
    csv(tmp_path / "in/b.csv", ROWS[5:], "other\n")
    with pytest.raises(BadInput, match=r"b.csv: its header differs from that of .*a.csv"):
        split(str(tmp_path / "in"), str(tmp_path / "again"), 2, shuffle=True, header=1)
    assert not (tmp_path / "again").exists()


def test_an_empty_part_has_the_header_alone(tmp_path: Path) -> None:
    source = str(csv(tmp_path / "in.csv", ROWS[:1]))
    with pytest.raises(BadInput, match="has 1 lines, too few for 2 parts"):
        split(source, str(tmp_path / "out"), 2, header=1)
    split(source, str(tmp_path / "out"), 2, header=1, allow_empty=True)
    assert sorted(parts(tmp_path / "out", "in.csv", 2)) == [["n,square\n"], ["n,square\n", ROWS[0]]]


def test_a_header_needs_as_many_lines(tmp_path: Path) -> None:
    source = str(csv(tmp_path / "in.csv", []))
    with pytest.raises(BadInput, match="has fewer than 3 header lines"):
        split(source, str(tmp_path / "out"), 1, header=3)

"""Laws of splitting: every record exactly once, even, in order, and the same each time."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.data import Manifest, split
from paddlejob.data.partition import shuffle
from paddlejob.data.partition.cuts import even_ranges, even_spans
from paddlejob.data.partition.lines import count_newlines
from tests.support.examples import examples

# Lines with CRs, empty lines, and now and then no newline at the end.
contents = st.lists(st.text("ab\r", max_size=6).map(str.encode), max_size=40).map(b"\n".join)


def records(content: bytes) -> list[bytes]:
    *whole, rest = content.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def written(dest: Path, made: Manifest) -> list[list[bytes]]:
    """The bytes of every file of every part, as the manifest names them."""
    return [[(dest / f"{p.part}/data/{f.name}").read_bytes() for f in p.files] for p in made.parts]


@given(st.integers(0, 10**12), st.integers(1, 500))
def test_even_ranges_cover_everything_and_differ_by_at_most_one(total: int, parts: int) -> None:
    ranges = even_ranges(total, parts)
    sizes = [last - first for first, last in ranges]
    assert ranges[0][0] == 0 and ranges[-1][1] == total
    assert all(left[1] == right[0] for left, right in pairwise(ranges))
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 12))
def test_spans_deal_out_every_item_of_every_file_once_and_in_order(counts: list[int], parts: int) -> None:
    dealt = even_spans(counts, parts)
    items = [(s.source, item) for part in dealt for s in part for item in range(s.first, s.last)]
    assert items == [(source, item) for source, count in enumerate(counts) for item in range(count)]
    assert max(sizes := [sum(s.last - s.first for s in part) for part in dealt]) - min(sizes) <= 1


@examples(60)
@given(st.lists(contents, min_size=1, max_size=3), st.integers(1, 7))
def test_lines_keep_their_order_and_parts_are_even_within_one(files: list[bytes], parts: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, dest = Path(name, "in"), Path(name, "out")
        source.mkdir()
        for number, content in enumerate(files):
            (source / f"{number}.txt").write_bytes(content)
        made = split(str(source), str(dest), parts, allow_empty=True)
        assert b"".join(b for part in written(dest, made) for b in part) == b"".join(files)
        counts = [sum(len(records(b)) for b in part) for part in written(dest, made)]
        assert counts == [part.records for part in made.parts]
        assert max(counts) - min(counts) <= 1


@examples(40)
@given(st.binary(max_size=300), st.integers(1, 7))
def test_byte_ranges_put_together_are_the_source(content: bytes, parts: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, dest = Path(name, "in.bin"), Path(name, "out")
        source.write_bytes(content)
        made = split(str(source), str(dest), parts, "bytes", allow_empty=True)
        assert b"".join(b for part in written(dest, made) for b in part) == content
        assert max(sizes := [part.bytes for part in made.parts]) - min(sizes) <= 1


@examples(40)
@given(contents, st.integers(1, 7), st.integers(0, 3), st.integers(1, 60))
def test_shuffling_loses_and_doubles_nothing_whatever_the_bucket_size(
    content: bytes, parts: int, seed: int, bucket: int
) -> None:
    wanted = sorted(line.removesuffix(b"\n") for line in records(content))
    before, shuffle.BUCKET_BYTES = shuffle.BUCKET_BYTES, bucket
    try:
        with tempfile.TemporaryDirectory() as name:
            source = Path(name, "in.txt")
            source.write_bytes(content)
            results = []
            for dest in (Path(name, "a"), Path(name, "b")):
                made = split(str(source), str(dest), parts, shuffle=True, seed=seed, allow_empty=True)
                results.append(written(dest, made))
    finally:
        shuffle.BUCKET_BYTES = before
    assert results[0] == results[1]
    got = [line.removesuffix(b"\n") for part in results[0] for b in part for line in records(b)]
    assert sorted(got) == wanted
    assert max(sizes := [part.records for part in made.parts]) - min(sizes) <= 1


def test_a_seed_decides_the_order_and_another_seed_another(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{n}\n" for n in range(2000)))
    for seed in (1, 2):
        split(str(source), str(tmp_path / str(seed)), 2, shuffle=True, seed=seed)
    one, two = ((tmp_path / f"{seed}/0/data/in.txt").read_text().split() for seed in (1, 2))
    assert one != two and sorted(map(int, one)) != list(map(int, one))
    assert 400 < sum(int(n) < 1000 for n in one) < 600


def test_lines_longer_than_what_is_read_at_once_are_shuffled_whole(tmp_path: Path) -> None:
    lines = [b"%d" % number * (3 << 20) for number in range(5)] + [b"short", b""]
    (tmp_path / "in.txt").write_bytes(b"\r\n".join(lines))
    made = split(str(tmp_path / "in.txt"), str(tmp_path / "out"), 3, shuffle=True, seed=1)
    got = [line for files in written(tmp_path / "out", made) for line in records(files[0])]
    assert sorted(got) == sorted(line + b"\r\n" for line in lines[:-1])


def test_the_order_of_a_seed_stays_the_same_in_every_version(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\nc\nd\ne\nf\n")
    split(str(tmp_path / "in.txt"), str(tmp_path / "out"), 2, shuffle=True, seed=7)
    assert [(tmp_path / f"out/{part}/data/in.txt").read_text() for part in (0, 1)] == ["f\nc\nb\n", "d\na\ne\n"]


@pytest.mark.parametrize("width", [0, 100])
def test_cuts_are_right_across_chunks_with_short_lines_and_with_long_ones(tmp_path: Path, width: int) -> None:
    content = b"".join(b"%d%s\n" % (number, b"x" * (number % 7 * width)) for number in range(300_000)) + b"open end"
    (tmp_path / "in.txt").write_bytes(content)
    made = split(str(tmp_path / "in.txt"), str(tmp_path / "out"), 5)
    parts = [files[0] for files in written(tmp_path / "out", made)]
    assert b"".join(parts) == content
    assert [len(records(part)) for part in parts] == [p.records for p in made.parts]
    assert max(sizes := [p.records for p in made.parts]) - min(sizes) <= 1


@given(contents, st.floats(0, 1000))
def test_newlines_are_counted_right_whatever_line_length_is_guessed(content: bytes, guess: float) -> None:
    assert count_newlines(content, guess) == len(content.split(b"\n")) - 1

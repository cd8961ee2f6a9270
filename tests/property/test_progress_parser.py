"""Laws of the progress parser, for any output of a program."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.api.types import ProgressSpec
from paddlejob.progress import Parser, Sample
from paddlejob.progress.numbers import LARGEST

PIECES = st.sampled_from(
    ["step", "epoch", "iter", "loss", "=", ":", "/", "[", "]", "%|", "|", "{", "}", '"', "'", ",", " ", "\r", "\b",
     "\x1b[31m", "\t", "nan", "inf", "1e999", "-", ".", "0", "7", "99999999999", "1,000", "of", "ms/step", "eval",
     "saved checkpoint", "Epoch 1/3", "(", ")", "\x00", "\ufffd", "損失"]
)  # fmt: skip
GARBAGE = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=40).map("".join))
SPECS = st.sampled_from(
    [ProgressSpec(), ProgressSpec(metrics=("acc", "loss")), ProgressSpec(pattern=r"(?P<step>\d+).*?(?P<loss>\S+)")]
)


def check(sample: Sample | None) -> None:
    if sample is None:
        return
    positions = (sample.step, sample.total_steps, sample.epoch, sample.total_epochs, sample.checkpoint)
    assert all(value is None or 0 <= value <= LARGEST for value in positions)
    assert all(math.isfinite(value) for value in sample.metrics.values())
    assert not sample.metrics.keys() & sample.non_finite.keys()
    assert any(value is not None for value in positions) or sample.metrics or sample.non_finite


@given(SPECS, st.lists(GARBAGE, max_size=5))
def test_any_lines_are_read_without_an_error_and_never_leave_the_range_of_the_status(spec: ProgressSpec, lines):
    parser = Parser(spec)
    for line in lines:
        check(parser.parse(line))


@given(SPECS, st.binary(max_size=500))
def test_binary_output_is_read_without_an_error(spec: ProgressSpec, output: bytes):
    check(Parser(spec).parse(output.decode(errors="replace")))


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.floats(0, 1e6), GARBAGE)
def test_garbage_before_a_line_does_not_change_what_is_read(total: int, step: int, loss: float, garbage: str):
    step = min(step, total)
    parser = Parser()
    parser.parse("\n".join(garbage.splitlines()[:1]).replace("pass", "").replace("epoch", "").replace("Epoch", ""))
    sample = parser.parse(f"global_step {step}/{total} loss={loss!r}")
    assert sample and (sample.step, sample.total_steps) == (step, total)
    assert sample.metrics == {"loss": loss}


@pytest.mark.parametrize(
    "unit", ["a", " ", "=", "[", "1", "step ", "loss=1 ", "1/", "{", '{"a":', "37%|", "\x1b[", "\r"]
)
def test_a_line_of_a_megabyte_is_read_at_the_cost_of_a_short_one(unit: str):
    check(Parser(ProgressSpec(metrics=("acc",))).parse(unit * (1_000_000 // len(unit))))


def test_the_beginning_of_a_long_line_is_read_without_the_number_that_is_cut():
    line = "step 10/500 loss=0.5 " + "x" * 4060 + " acc=0.123456789" + "y" * 1_000_000
    sample = Parser(ProgressSpec(metrics=("acc",))).parse(line)
    assert sample and sample.step == 10 and sample.metrics == {"loss": 0.5}


def test_the_end_of_a_bar_that_was_drawn_a_thousand_times_is_read():
    bar = "\r".join(f"Train {step // 10}%|#####     | {step}/1000 [00:01<00:09, 99.9it/s]" for step in range(1001))
    sample = Parser().parse(bar)
    assert sample and (sample.step, sample.total_steps) == (1000, 1000)

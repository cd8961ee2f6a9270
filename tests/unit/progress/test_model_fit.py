"""The progress bar of paddle.Model.fit, as Paddle itself prints it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from paddlejob.progress import Parser

EPOCHS, STEPS = 3, 20


@pytest.fixture
def progress_bar() -> ModuleType:
    """Paddle's module alone: importing all of Paddle takes two seconds."""
    paddle = importlib.util.find_spec("paddle")
    if paddle is None or not paddle.origin:
        pytest.skip("PaddlePaddle is not installed")
    spec = importlib.util.spec_from_file_location("bar", Path(paddle.origin).parent / "hapi/progressbar.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("verbose", "drawn"), [(1, [20, 40, 60]), (2, list(range(5, 61, 5)))])
def test_steps_rise_through_all_epochs(
    verbose: int, drawn: list[int], progress_bar: ModuleType, capsys: pytest.CaptureFixture[str]
):
    for epoch in range(1, EPOCHS + 1):
        print(f"Epoch {epoch}/{EPOCHS}")
        bar = progress_bar.ProgressBar(STEPS, verbose=verbose)
        for step in range(5, STEPS + 1, 5):
            bar.update(step, [("loss", epoch + step / 100), ("acc", 0.5)])
        print("Eval begin...")
        bar = progress_bar.ProgressBar(10, verbose=verbose)
        bar.update(10, [("loss", 9.0), ("acc", 0.5)])
        print("Eval samples: 320")
    parser = Parser()
    samples = [parser.parse(line) for line in capsys.readouterr().out.split("\n")]
    found = [sample for sample in samples if sample and sample.step is not None]
    assert [sample.step for sample in found] == drawn
    assert {(sample.total_steps, sample.total_epochs) for sample in found} == {(STEPS * EPOCHS, EPOCHS)}
    assert found[-1].metrics == {"loss": 3.2}

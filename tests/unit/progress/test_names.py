"""The names under which programs print a value, what a line may say besides, and how far numbers count."""

from __future__ import annotations

import json

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.progress import Parser, Sample
from paddlejob.text import visible

GLOBAL_STEP = "global_step trainer/global_step globalstep num_updates"
STEP = f"{GLOBAL_STEP} step train/step train_step current_step cur_step iter iteration"
STEPS = "total_steps max_steps total_iters max_iters num_training_steps"
EPOCHS = "total_epochs max_epochs num_epochs num_train_epochs"


def read(line: str, *metrics: str) -> Sample:
    return Parser(ProgressSpec(metrics=metrics)).parse(line) or Sample()


def read_last(*lines: str) -> Sample:
    parser = Parser()
    return [parser.parse(line) or Sample() for line in lines][-1]


@pytest.mark.parametrize(
    ("names", "metric"),
    [
        ("loss train_loss train/loss avg_loss total_loss AvgCost cost", "loss"),
        ("learning_rate lr cur_lr train/lr train/learning_rate", "learning_rate"),
        (
            "samples_per_second interval_samples_per_second train_samples_per_second samples/s images/s ips",
            "samples_per_second",
        ),
    ],
)
def test_a_metric_has_these_names(names: str, metric: str):
    for name in names.split():
        assert read(f"step: 5/10, {name}: 0.25").metrics == {metric: 0.25}, name


@pytest.mark.parametrize(
    ("names", "field", "value", "line"),
    [
        (STEP, "step", 7, '{"NAME": 7, "loss": 1}'),
        ("epoch progress_or_epoch train/epoch cur_epoch", "epoch", 2, '{"NAME": 2.5, "step": 7}'),
        (STEPS, "total_steps", 90, "global_step: 7, NAME: 90"),
        (EPOCHS, "total_epochs", 9, "epoch: 2, NAME: 9, loss: 0.5"),
        (EPOCHS, "total_epochs", 9, '{"epoch": 2, "NAME": 9, "step": 7, "loss": 0.5}'),
    ],
)
def test_a_position_has_these_names(names: str, field: str, value: int, line: str):
    for name in names.split():
        assert getattr(read(line.replace("NAME", name)), field) == value, name


@pytest.mark.parametrize("name", STEPS.split())
def test_the_number_of_steps_is_remembered(name: str):
    found = read_last(json.dumps({name: 90, "loss": 1}), "step: 7, loss: 0.5", "step: 8, loss: 0.5")
    assert (found.step, found.total_steps) == (8, 90)


@pytest.mark.parametrize("unit", ["sample", "samples", "image", "images", "imgs", "examples", "sequences", "records"])
def test_the_speed_is_also_a_number_with_its_unit(unit: str):
    assert read(f"step: 5/10, 1,250.5 {unit}/s").metrics == {"samples_per_second": 1250.5}
    assert read(f"step: 5/10, 7{unit}/sec").metrics == {"samples_per_second": 7}


def test_a_speed_in_tokens_is_not_one_in_samples():
    assert read("step: 5/10, ips: 18923 tokens/s").metrics == {}


@pytest.mark.parametrize("name", GLOBAL_STEP.split()[1:])
def test_a_global_step_outranks_the_step_of_an_epoch(name: str):
    found = read(f"epoch: 2/3, step: 5/100, {name}: 105, loss: 0.5")
    assert (found.step, found.epoch) == (105, 2)


@pytest.mark.parametrize("words", ["total steps", "max train steps", "num training steps", "total optimization steps"])
def test_the_number_of_steps_may_be_announced_in_words(words: str):
    assert read(f"{words} = 1,500").total_steps == 1500
    assert read(f"{words.replace('step', 'iter')}: 1,500").total_steps == 1500


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cost 0.25", Sample(metrics={"loss": 0.25})),
        ("loss 0.25", Sample(metrics={"loss": 0.25})),
        ("Pass 2/9", Sample(epoch=2, total_epochs=9)),
        ("iter 2/9", Sample(step=2, total_steps=9)),
        ("epoch 2/9", Sample(epoch=2, total_epochs=9)),
        ("written ckpt-80", Sample(checkpoint=80)),
        ("written checkpoint-80", Sample(checkpoint=80)),
    ],
)
def test_one_telling_word_is_enough(line: str, found: Sample):
    assert read(line) == found


def test_a_line_without_such_a_word_is_read_if_it_has_a_metric_that_the_job_names():
    assert read("Accuracy = 0.5") == Sample()
    assert read("Accuracy = 0.5", "accuracy").metrics == {"accuracy": 0.5}


@pytest.mark.parametrize(
    "name", ["total", "max", "num", "every", "save", "best", "val", "eval", "log", "warm-up", "per"]
)
def test_a_name_behind_such_a_word_is_not_that_of_training(name: str):
    assert read(f"{name} step 5/10") == Sample()
    assert read(f"{name} loss: 0.5").metrics == {}


@pytest.mark.parametrize(("step", "seen"), [(2**31 - 1, 2**31 - 1), (2**31, None), (0, 0)])
def test_a_step_fits_into_32_bits(step: int, seen: int | None):
    assert read(f"step={step} loss=1").step == seen


@pytest.mark.parametrize(("digits", "seen"), [(9, 999_999_999), (10, None)])
def test_a_bar_counts_up_to_nine_digits(digits: int, seen: int | None):
    assert read(f"Training: 10%|#  | {'9' * digits}/{'9' * 9} [00:10<00:17]").step == seen
    assert read(f"Training: 10%|#  | 5/{'9' * digits} [00:10<00:17]").step == (5 if seen else None)


def test_a_step_beyond_the_total_leaves_the_total_out():
    assert (read("step=7/7 loss=1").total_steps, read("step=8/7 loss=1").total_steps) == (7, None)


@pytest.mark.parametrize("text", ["{broken", "{'step': 3}", '{"step": 3'], ids=["no JSON", "Python", "torn"])
def test_what_only_looks_like_json_is_read_as_text(text: str):
    assert read(text).step == (3 if "3" in text else None)


def test_in_json_a_value_outside_wins_over_one_inside_and_only_numbers_count():
    line = {"train": {"loss": 9, "step": 4}, "loss": 0.5, "accuracy": True, "note": "x", "auc": "1,000.5"}
    found = read(json.dumps(line), "accuracy", "auc", "note")
    assert (found.step, found.metrics) == (4, {"loss": 0.5, "auc": 1000.5})
    assert read(json.dumps({"step": 4, "loss": 10**400})).metrics == {}


@pytest.mark.parametrize(
    "line",
    [
        "failed to save checkpoint-80", "could not write checkpoint-80", "checkpoint-80 skipped, not saved",
        "saving logs of step 80", "model of step 80", "loaded checkpoint-80",
    ],
)  # fmt: skip
def test_a_line_about_something_else_is_no_checkpoint(line: str):
    assert read(line).checkpoint is None


@pytest.mark.parametrize("word", ["save", "saved", "saves", "saving", "wrote", "written", "writing"])
@pytest.mark.parametrize("subject", ["checkpoint", "ckpt", "model", "state", "params", "weights"])
def test_a_checkpoint_is_read_in_many_words(word: str, subject: str):
    assert read(f"{word} {subject} at step 80").checkpoint == 80


@pytest.mark.parametrize("after", ["3.60MB/s", "3.60kB/s", "12.5GiB/s", "800B/s"])
def test_a_bar_in_bytes_is_a_download(after: str):
    assert read(f"Training: 37%|###   | 37/100 [00:10<00:17, {after}]") == Sample()


def test_a_long_line_is_read_up_to_a_space_and_a_redrawn_one_from_its_end():
    assert visible("a" * 3000 + " " + "b" * 3000) == "a" * 3000
    assert len(visible("a " * 2048)) == 4095
    drawn = "\r".join(f"step {number}/9999" for number in range(2000))
    assert visible(drawn) == "step 1999/9999"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("\x1b[32mstep 3/9\x1b[0m\r\n", "step 3/9"),
        ("old\rnew\r  ", "new"),
        ("old\b\b\bnew", "new"),
        ("\r \r", ""),
        ("a\tb", "a\tb"),
        ("a\x00b", "ab"),
    ],
)
def test_only_what_a_terminal_would_show_is_read(line: str, seen: str):
    assert visible(line) == seen


def test_a_train_step_counts_unless_it_is_one_of_an_epoch():
    assert read("train step: 50, loss: 0.5").step == 50
    assert read("epoch: 3, train step: 50, loss: 0.5").step is None


def test_json_that_is_nested_too_deeply_is_no_error():
    assert read('{"step": ' + "[" * 3000 + "}") == Sample()


def test_a_metric_that_the_job_names_may_be_one_of_a_validation():
    assert read("step 1/2, val accuracy: 0.5, val loss: 7", "accuracy").metrics == {"accuracy": 0.5}

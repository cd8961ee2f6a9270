"""Every name under which programs print a value is known, and where a number or a line is too long to count."""

from __future__ import annotations

import json

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.progress import Parser, Sample
from paddlejob.progress.text import visible

LOSS = ["loss", "train_loss", "train/loss", "avg_loss", "total_loss", "AvgCost", "cost"]
LEARNING_RATE = ["learning_rate", "lr", "cur_lr", "train/lr", "train/learning_rate"]
SPEED = [
    "samples_per_second", "interval_samples_per_second", "train_samples_per_second", "samples/s", "images/s", "ips",
]  # fmt: skip
GLOBAL_STEP = ["global_step", "trainer/global_step", "globalstep", "num_updates"]
STEP = ["step", "train/step", "train_step", "current_step", "cur_step", "iter", "iteration"]
TOTAL_STEPS = ["total_steps", "max_steps", "total_iters", "max_iters", "num_training_steps"]
EPOCH = ["epoch", "progress_or_epoch", "train/epoch", "cur_epoch"]
TOTAL_EPOCHS = ["total_epochs", "max_epochs", "num_epochs", "num_train_epochs"]


def read(line: str, *metrics: str) -> Sample:
    return Parser(ProgressSpec(metrics=metrics)).parse(line) or Sample()


def read_last(*lines: str) -> Sample:
    parser = Parser()
    return [parser.parse(line) or Sample() for line in lines][-1]


@pytest.mark.parametrize("name", LOSS)
def test_the_loss_has_these_names(name: str):
    assert read(f"step: 5/10, {name}: 0.25").metrics == {"loss": 0.25}


@pytest.mark.parametrize("name", LEARNING_RATE)
def test_the_learning_rate_has_these_names(name: str):
    assert read(f"step: 5/10, {name}: 0.25").metrics == {"learning_rate": 0.25}


@pytest.mark.parametrize("name", SPEED)
def test_the_speed_has_these_names(name: str):
    assert read(f"step: 5/10, {name}: 250").metrics == {"samples_per_second": 250}


@pytest.mark.parametrize("unit", ["sample", "samples", "image", "images", "imgs", "examples", "sequences", "records"])
def test_the_speed_is_also_a_number_with_its_unit(unit: str):
    assert read(f"step: 5/10, 1,250.5 {unit}/s").metrics == {"samples_per_second": 1250.5}
    assert read(f"step: 5/10, 7{unit}/sec").metrics == {"samples_per_second": 7}


def test_a_speed_in_tokens_is_not_one_in_samples():
    assert read("step: 5/10, ips: 18923 tokens/s").metrics == {}


@pytest.mark.parametrize("name", [*GLOBAL_STEP, *STEP])
def test_in_json_the_step_has_these_names(name: str):
    assert read(json.dumps({name: 7, "loss": 0.5})).step == 7


@pytest.mark.parametrize("name", GLOBAL_STEP[1:])
def test_a_global_step_outranks_the_step_of_an_epoch(name: str):
    found = read(f"epoch: 2/3, step: 5/100, {name}: 105, loss: 0.5")
    assert (found.step, found.epoch) == (105, 2)


@pytest.mark.parametrize("name", TOTAL_STEPS)
def test_the_number_of_steps_has_these_names_and_is_remembered(name: str):
    found = read_last(json.dumps({name: 90, "loss": 1}), "step: 7, loss: 0.5", "step: 8, loss: 0.5")
    assert (found.step, found.total_steps) == (8, 90)
    assert read(f"global_step: 7, {name}: 90").total_steps == 90


@pytest.mark.parametrize("words", ["total steps", "max train steps", "num training steps", "total optimization steps"])
def test_the_number_of_steps_may_be_announced_in_words(words: str):
    assert read(f"{words} = 1,500").total_steps == 1500
    assert read(f"{words.replace('step', 'iter')}: 1,500").total_steps == 1500


@pytest.mark.parametrize("name", EPOCH)
def test_in_json_the_epoch_has_these_names(name: str):
    assert read(json.dumps({name: 2.5, "step": 7})).epoch == 2


@pytest.mark.parametrize("name", TOTAL_EPOCHS)
def test_the_number_of_epochs_has_these_names(name: str):
    assert read(json.dumps({"epoch": 2, name: 9, "step": 7, "loss": 0.5})).total_epochs == 9
    assert read(f"epoch: 2, {name}: 9, loss: 0.5").total_epochs == 9


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
    "line", ["failed to save checkpoint-80", "could not write checkpoint-80", "checkpoint-80 skipped, not saved"]
)
def test_a_checkpoint_that_was_not_written_does_not_count(line: str):
    assert read(line).checkpoint is None


@pytest.mark.parametrize("line", ["saving logs of step 80", "model of step 80", "loaded checkpoint-80"])
def test_a_line_about_something_else_is_no_checkpoint(line: str):
    assert read(line).checkpoint is None


@pytest.mark.parametrize("word", ["save", "saved", "saves", "saving", "wrote", "written", "writing"])
@pytest.mark.parametrize("subject", ["checkpoint", "ckpt", "model", "state", "params", "weights"])
def test_a_checkpoint_is_read_in_many_words(word: str, subject: str):
    assert read(f"{word} {subject} at step 80").checkpoint == 80


@pytest.mark.parametrize("begin", ["Eval begin...", "Predict begin...", "Running Evaluation", "Start evaluating"])
@pytest.mark.parametrize("end", ["Eval samples: 640", "***** Running training", "[TRAIN] epoch: 2, iter: 5/9"])
def test_steps_of_an_evaluation_are_left_out_until_it_ends(begin: str, end: str):
    assert read_last(begin, "step 5/10 loss=0.5").step is None
    assert read_last(begin, "step 5/10 loss=0.5", end, "step 6/10 loss=0.5").step == 6


@pytest.mark.parametrize("line", ["epoch 2/3 loss=0.5", "global_step: 12, loss: 0.5"])
def test_an_evaluation_ends_with_a_line_of_training(line: str):
    assert read_last("Eval begin...", line).metrics == {"loss": 0.5}


def test_a_bar_of_the_size_of_training_ends_an_evaluation_and_another_does_not():
    training, other = "Training: 10%|#  | 10/100 [00:10]", "Training: 10%|#  | 3/30 [00:10]"
    assert read_last(training, "Running Evaluation", other).step is None
    assert read_last(training, "Running Evaluation", other, training).step == 10


@pytest.mark.parametrize("after", ["3.60MB/s", "3.60kB/s", "12.5GiB/s", "800B/s"])
def test_a_bar_in_bytes_is_a_download(after: str):
    assert read(f"Training: 37%|###   | 37/100 [00:10<00:17, {after}]") == Sample()


def test_a_bar_without_a_description_counts_once_it_is_known_to_be_that_of_training():
    bar = "37%|###   | 37/100 [00:10<00:17, 3.60it/s]"
    assert read_last(bar).step is None
    assert read_last("total steps = 100", bar).step == 37
    assert read_last("total steps = 90", bar).step is None
    assert read_last("Epoch 2/3", bar).step == 137
    assert read_last(bar.replace("it/s", "it/s, loss=0.5")).step == 37


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


def test_a_pattern_is_applied_to_the_first_2000_characters():
    parser = Parser(ProgressSpec(pattern=r"s=(?P<step>\d)"))
    assert (parser.parse("x" * 1997 + "s=7") or Sample()).step == 7
    assert parser.parse("x" * 1998 + "s=7") is None


def test_a_pattern_may_name_every_part_of_the_position():
    pattern = (
        r"(?P<step>\d+) (?P<total_steps>\d+) (?P<epoch>\d+) (?P<total_epochs>\d+) (?P<checkpoint>\d+) (?P<auc>\S+)"
    )
    assert Parser(ProgressSpec(pattern=pattern)).parse("1 2 3 4 5 0.5") == Sample(1, 2, 3, 4, 5, {"auc": 0.5})


def test_a_train_step_counts_unless_it_is_one_of_an_epoch():
    assert read("train step: 50, loss: 0.5").step == 50
    assert read("epoch: 3, train step: 50, loss: 0.5").step is None


def test_json_that_is_nested_too_deeply_is_no_error():
    assert read('{"step": ' + "[" * 3000 + "}") == Sample()


def test_a_metric_that_the_job_names_may_be_one_of_a_validation():
    assert read("step 1/2, val accuracy: 0.5, val loss: 7", "accuracy").metrics == {"accuracy": 0.5}


@pytest.mark.parametrize("line", ["epoch: 3", "Epoch 2/5:  37%|###   | 37/100 [00:10<00:17]", "epoch 3/5 loss=0.5"])
def test_only_a_line_with_the_number_of_an_epoch_and_nothing_else_is_the_heading_of_the_next(line: str):
    found = read_last(line, "step=50/500 loss=0.5")
    assert (found.step, found.total_steps, found.epoch) == (50, 500, None)
    assert read_last("Epoch 3/5", "step=50/500 loss=0.5").epoch == 3

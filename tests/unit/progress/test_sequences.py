"""Formats that spread over several lines, read in the order of the log."""

from __future__ import annotations

import pytest

from paddlejob.progress import Parser, Sample

MODEL_FIT = """\
Epoch 1/3
step 10/47 - loss: 0.5000 - acc: 0.8000 - 20ms/step
step 47/47 - loss: 0.4000 - acc: 0.8500 - 19ms/step
Eval begin...
step 10/10 - loss: 9.0000 - acc: 0.1000 - 5ms/step
Eval samples: 640
Epoch 2/3
step 10/47 - loss: 0.3000 - acc: 0.9000 - 20ms/step
"""
TRAINER = """\
***** Running training *****
  Num Epochs = 3
  Total optimization steps = 600
 17%|#7        | 100/600 [01:11<05:58,  1.40it/s]
***** Running Evaluation *****
 50%|#####     | 5/10 [00:01<00:01,  4.40it/s]
Saving model checkpoint to ./checkpoints/checkpoint-100
eval_loss: 0.5, eval_accuracy: 0.9, eval_runtime: 2.5, epoch: 0.5
 17%|#7        | 101/600 [01:15<05:58,  1.40it/s]
loss: 0.25, learning_rate: 1e-05, global_step: 110, epoch: 0.55
"""


def steps(log: str, parser: Parser | None = None) -> list[int]:
    return [sample.step for sample in samples(log, parser) if sample.step is not None]


def samples(log: str, parser: Parser | None = None) -> list[Sample]:
    reader = parser or Parser()
    return [sample for line in log.splitlines() if (sample := reader.parse(line))]


def read_last(*lines: str) -> Sample:
    parser = Parser()
    return [parser.parse(line) or Sample() for line in lines][-1]


def test_steps_of_model_fit_are_counted_over_all_epochs_and_evaluation_is_left_out():
    assert steps(MODEL_FIT) == [10, 47, 57]
    last = samples(MODEL_FIT)[-1]
    assert (last.total_steps, last.epoch, last.total_epochs) == (141, 2, 3)
    assert last.metrics == {"loss": 0.3}


def test_a_parser_that_starts_within_an_epoch_of_model_fit_waits_for_the_next_one():
    rest = MODEL_FIT.partition("\n")[2]
    assert steps(rest) == [57]
    assert samples(rest)[0].metrics == {"loss": 0.5}


def test_lines_that_are_read_twice_tell_the_same():
    parser = Parser()
    assert steps(MODEL_FIT, parser) == steps(MODEL_FIT, parser)


def test_batches_of_train_from_dataset_count_over_all_calls_also_if_lines_are_read_twice():
    lines = [f"time: [Wed Jan  7 03:0{call}:{batch} 2026], batch: [{batch}]" for call in (1, 2) for batch in (10, 20)]
    assert steps("\n".join([*lines, *lines[1:]])) == [10, 20, 30, 40, 20, 30, 40]


def test_the_last_state_of_a_bar_of_model_fit_counts():
    parser = Parser()
    parser.parse("Epoch 2/3")
    bar = "step 10/47 [====>......] - loss: 0.5 - ETA: 2s - 20ms/step"
    erased = "\b" * 60 + "\r" + bar.replace("10/47", "20/47")
    sample = parser.parse(bar + erased)
    assert sample and sample.step == 67


def test_the_bar_of_an_evaluation_is_not_taken_for_the_bar_of_training():
    assert steps(TRAINER) == [100, 101, 110]
    assert samples(TRAINER)[-1].total_steps == 600
    assert [sample.checkpoint for sample in samples(TRAINER) if sample.checkpoint] == [100]


def test_epochs_that_begin_at_zero_do_not_count_twice():
    log = "\n".join(f"Train Epoch: {epoch}/4 Step: {step}/100" for epoch in range(4) for step in (50, 99))
    assert steps(log) == [50, 99, 150, 199, 250, 299, 350, 399]


def test_steps_that_go_on_through_the_epochs_are_not_counted_twice():
    for line in ("epoch {epoch}/4 step {step}/400 loss=0.5", "Epoch {epoch}/4\nstep {step}/400 loss=0.5"):
        log = "\n".join(line.format(epoch=(step - 1) // 100 + 1, step=step) for step in range(50, 401, 50))
        assert steps(log) == list(range(50, 401, 50))
        assert samples(log)[-1].total_steps == 400


def test_an_epoch_beside_lines_with_steps_does_not_change_them():
    log = "step=50/100 loss=0.5\nepoch=1/2 accuracy=0.5\nstep=100/100 loss=0.25\nepoch=2/2 accuracy=0.75"
    assert steps(log) == [50, 100]


def test_steps_without_a_total_that_start_over_each_epoch_are_dropped():
    log = "\n".join(f"Epoch {epoch} | Iter {step} | Loss 0.5" for epoch in (0, 1) for step in (10, 20))
    assert steps(log) == [10, 20]
    assert [sample.epoch for sample in samples(log)] == [0, 0, 1, 1]


def test_steps_without_a_total_that_rise_over_the_epochs_are_kept():
    log = "\n".join(f"epoch={step // 20} step={step} loss=0.5" for step in range(10, 70, 10))
    assert steps(log) == [10, 20, 30, 40, 50, 60]


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


def test_a_bar_without_a_description_counts_once_it_is_known_to_be_that_of_training():
    bar = "37%|###   | 37/100 [00:10<00:17, 3.60it/s]"
    assert read_last(bar).step is None
    assert read_last("total steps = 100", bar).step == 37
    assert read_last("total steps = 90", bar).step is None
    assert read_last("Epoch 2/3", bar).step == 137
    assert read_last(bar.replace("it/s", "it/s, loss=0.5")).step == 37


@pytest.mark.parametrize("line", ["epoch: 3", "Epoch 2/5:  37%|###   | 37/100 [00:10<00:17]", "epoch 3/5 loss=0.5"])
def test_only_a_line_with_the_number_of_an_epoch_and_nothing_else_is_the_heading_of_the_next(line: str):
    found = read_last(line, "step=50/500 loss=0.5")
    assert (found.step, found.total_steps, found.epoch) == (50, 500, None)
    assert read_last("Epoch 3/5", "step=50/500 loss=0.5").epoch == 3

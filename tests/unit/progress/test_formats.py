"""The formats of training programs, and what is read from one line of each."""

from __future__ import annotations

import pytest

from paddlejob.api.types import ProgressSpec
from paddlejob.progress import Parser, Sample

METRICS = ("accuracy", "acc", "auc", "top1", "mIoU")


def sample(step=None, of=None, epoch=None, epochs=None, checkpoint=None, non_finite=None, **metrics: float) -> Sample:
    short = {"lr": "learning_rate", "speed": "samples_per_second"}
    named = {short.get(name, name): value for name, value in metrics.items()}
    return Sample(step, of, epoch, epochs, checkpoint, named, non_finite or {})


FORMATS = {
    # What the bundled examples print.
    "examples/checkpoint": (
        "worker 0 of 2: step 40/60 loss=0.4321 accuracy=0.8800",
        sample(40, 60, loss=0.4321, accuracy=0.88),
    ),
    "examples/checkpoint, resumed": ("worker 0 of 2: starts after step 30 of 60", sample(30, 60)),
    "examples/mnist": (
        "epoch 3/10 12,345 images/s loss=0.0321 accuracy=0.9876",
        sample(epoch=3, epochs=10, loss=0.0321, accuracy=0.9876, speed=12345),
    ),
    "examples/resnet": (
        "worker 0 of 2: epoch 2/4 310 images/s loss=1.2500 accuracy=0.5100",
        sample(epoch=2, epochs=4, loss=1.25, accuracy=0.51, speed=310),
    ),
    "examples/wide_and_deep": (
        "epoch 2/6 worker 0 45,678 samples/s loss=0.4410 auc=0.8012",
        sample(epoch=2, epochs=6, loss=0.441, auc=0.8012, speed=45678),
    ),
    "examples, as key=value": (
        "step=40/60 loss=0.4321 accuracy=0.8800 samples/s=310",
        sample(40, 60, loss=0.4321, accuracy=0.88, speed=310),
    ),
    "examples, a checkpoint": ("checkpoint step=40 saved", sample(40, checkpoint=40)),
    "examples/quick_start": (
        "pass 3 of 10: trainer 0 1,234 reviews/s",
        sample(epoch=3, epochs=10, speed=1234),
    ),
    # PaddleFormers, PaddleNLP and ERNIEKit share a trainer.
    "PaddleFormers": (
        "[2026-01-05 10:11:12,131] [    INFO] - loss: 2.31640625, learning_rate: 3e-05, global_step: 120, "
        "current_memory_allocated: 12.5, interval_runtime: 2.5, interval_samples_per_second: 6.4, "
        "interval_steps_per_second: 0.8, ppl: 10.1, progress_or_epoch: 0.3",
        sample(120, epoch=0, loss=2.31640625, lr=3e-05, speed=6.4),
    ),
    "PaddleNLP, the total": (
        "[2023-05-06 07:08:09,100] [    INFO] -   Total optimization steps = 1,250,000",
        sample(of=1_250_000),
    ),
    "PaddleNLP, a dictionary": (
        "{'loss': 0.1733, 'learning_rate': 4.25e-05, 'global_step': 165, 'epoch': 2.2}",
        sample(165, epoch=2, loss=0.1733, lr=4.25e-05),
    ),
    "ERNIEKit": (
        "[2026-02-03 04:05:06,070] [    INFO] - loss: 1.75, learning_rate: 9.5e-06, global_step: 35, "
        "interval_samples_per_second: 3.5, tokens_trained_current_step: 4096, progress_or_epoch: 0.0714",
        sample(35, epoch=0, loss=1.75, lr=9.5e-06, speed=3.5),
    ),
    "PaddleNLP, GPT": (
        "[2022-08-01 02:03:04] [INFO] - global step 30, epoch: 0, batch: 29, loss: 9.912, avg_reader_cost: 0.01 sec, "
        "speed: 2.31 step/s, ips: 18923 tokens/s, learning rate: 1.5e-06",
        sample(30, epoch=0, loss=9.912),
    ),
    "PaddleDetection": (
        "[03/04 05:06:07] ppdet.engine INFO: Epoch: [2] [ 40/300] learning_rate: 0.000125 loss_xy: 2.5 loss_obj: 8.25 "
        "loss: 14.75 eta: 3 days, 1:02:03 batch_cost: 0.25 data_cost: 0.0021 ips: 31.5 images/s",
        sample(640, epoch=2, loss=14.75, lr=0.000125, speed=31.5),
    ),
    "PaddleDetection, static graph": (
        "2020-08-09 10:11:12,131-INFO: iter: 60, lr: 0.000035, 'loss': '287.625', eta: 5:10:47, "
        "batch_cost: 1.5 sec, ips: 5.25 images/sec",
        sample(60, loss=287.625, lr=0.000035, speed=5.25),
    ),
    "PaddleOCR": (
        "[2024/03/04 05:06:07] ppocr INFO: epoch: [7/500], global_step: 640, lr: 0.000975, acc: 0.4375, loss: 1.125, "
        "avg_reader_cost: 0.5 s, avg_batch_cost: 0.75 s, avg_samples: 16.0, ips: 21.25 samples/s, eta: 2 days, 1:02:03",
        sample(640, epoch=7, epochs=500, loss=1.125, lr=0.000975, acc=0.4375, speed=21.25),
    ),
    "PaddleOCR 2.0": (
        "[2021/02/03 04:05:06] root INFO: epoch: [4/10], iter: 34, lr: 0.000727, loss: 0.875, acc: 0.5625, "
        "reader_cost: 0.00004 s, batch_cost: 0.04378 s, samples: 256, ips: 5847.5",
        sample(34, epoch=4, epochs=10, loss=0.875, lr=0.000727, acc=0.5625, speed=5847.5),
    ),
    "PaddleClas": (
        "[2024/05/06 07:08:09] ppcls INFO: [Train][Epoch 4/20][Iter: 10/300]lr(LinearWarmup): 0.00125000, "
        "top1: 0.96875, CELoss: 0.0625, loss: 0.0625, batch_cost: 0.5s, reader_cost: 0.125, ips: 32.5 samples/s, "
        "eta: 5:01:10",
        sample(910, 6000, epoch=4, epochs=20, loss=0.0625, lr=0.00125, top1=0.96875, speed=32.5),
    ),
    "PaddleClas 2.0": (
        "2020-11-12 13:14:15 INFO: epoch:3  , train step:50  , loss: 5.5, top1: 0.125, lr: 0.100000, "
        "batch_cost: 0.25 s, ips: 225.5 images/sec.",
        sample(epoch=3, loss=5.5, top1=0.125, lr=0.1, speed=225.5),
    ),
    "PaddleSeg": (
        "2022-03-04 05:06:07 [INFO]\t[TRAIN] epoch: 3, iter: 260/1000, loss: 0.75, lr: 0.007459, batch_cost: 0.375, "
        "reader_cost: 0.00111, ips: 21.5 samples/sec | ETA 00:04:16",
        sample(260, 1000, epoch=3, loss=0.75, lr=0.007459, speed=21.5),
    ),
    "PaddleSeg 2.0": (
        "2021-01-02 03:04:05 [INFO]\t[TRAIN] epoch=1, iter=15/100, loss=1.5, lr=0.0087, batch_cost=0.5 | ETA 00:00:52",
        sample(15, 100, epoch=1, loss=1.5, lr=0.0087),
    ),
    "PaddleVideo": (
        "[01/02 03:04:05] epoch:[  8/80 ] train step:10   loss: 0.25 lr: 0.005010 top1: 0.75 batch_cost: 0.5 sec, "
        "reader_cost: 0.01 sec, ips: 46.5 instance/sec, eta: 1:02:03",
        sample(epoch=8, epochs=80, loss=0.25, lr=0.00501, top1=0.75, speed=46.5),
    ),
    "PaddleSpeech": (
        "[INFO 2022/01/02 03:04:05 model.py:61] Train: Rank: 0, epoch: 1, step: 5310, batch : 1559/1876, "
        "lr: 0.00050000, train time: 3.019s, batch size: 64, train_loss: 16.25",
        sample(5310, epoch=1, loss=16.25, lr=0.0005),
    ),
    "PaddleRec": (
        "2022-03-04 05:06:07,891 - INFO - epoch: 1, batch_id: 3770, auc:0.765625,  avg_reader_cost: 0.0015 sec, "
        "avg_samples: 512.00000, ips: 15.75 ins/s",
        sample(epoch=1, auc=0.765625, speed=15.75),
    ),
    "PaddlePaddle v1, within a pass": (
        "I0102 03:04:05.123456   101 TrainerInternal.cpp:165]  Batch=100 samples=12800 AvgCost=0.625 CurrentCost=0.5 "
        "Eval: classification_error_evaluator=0.25",
        sample(loss=0.625),
    ),
    "PaddlePaddle v1, end of a pass": (
        "I0102 03:04:05.123456   101 TrainerInternal.cpp:181]  Pass=2 Batch=565 samples=904000 AvgCost=0.5 Eval: ",
        sample(epoch=2, loss=0.5),
    ),
    "PaddlePaddle v2": (
        "Pass 1, Batch 300, Cost 0.390625, {'classification_error_evaluator': 0.1015625}",
        sample(epoch=1, loss=0.390625),
    ),
    "train_from_dataset": (
        "time: [Wed Jan  7 03:04:05 2026], batch: [50], auc[1]:[0.5], loss[1]:[1.04784]",
        sample(50, loss=1.04784, auc=0.5),
    ),
    "PaddleVideo, end of an epoch": (
        "[01/02 03:04:05] END epoch:7   train loss_avg: 0.25 top1_avg: 0.75 avg_ips: 46.5 instance/sec.",
        sample(epoch=7, loss=0.25, speed=46.5),
    ),
    "no space before the number": (
        "epoch0: batch0: batch_loss 0.5 train_lr: 0.001",
        sample(epoch=0, loss=0.5, lr=0.001),
    ),
    # What people write themselves.
    "key=value": ("step=1200 total_steps=5000 loss=0.25 lr=0.01", sample(1200, 5000, loss=0.25, lr=0.01)),
    "key: value": ("step: 1200, loss: 0.25", sample(1200, loss=0.25)),
    "a logger in front": (
        "2026-01-02 03:04:05.678 | INFO     | trainer:train:469 - Step 12: loss=5.25",
        sample(12, loss=5.25),
    ),
    "epoch and step in brackets": (
        "Epoch [3/10], Step [100/600], Loss: 0.125",
        sample(1300, 6000, epoch=3, epochs=10, loss=0.125),
    ),
    "train and validation": (
        "Epoch 3/10 - train loss: 0.5 - val loss: 0.75 - accuracy: 0.25",
        sample(epoch=3, epochs=10, loss=0.5, accuracy=0.25),
    ),
    "a total in words": ("Max train steps: 15,000", sample(of=15000)),
    "a tensor": ("Epoch 0 step 100, Loss = [1.125]", sample(100, epoch=0, loss=1.125)),
    "a fraction": ("[10/500] loss=0.5", sample(10, 500, loss=0.5)),
    "a fraction alone": ("[10/500]", sample(10, 500)),
    "an epoch with a fraction": ("Epoch 3/10 [20/61] loss 0.5", sample(142, 610, epoch=3, epochs=10, loss=0.5)),
    "PaddleTS": (
        "[2024-01-02 03:04:05,678] [paddlets] [INFO] Epoch 012| loss: 0.125000| val_0_mse: 0.25| 0:00:12s",
        sample(epoch=12, loss=0.125),
    ),
    "words": ("Step 7 of 100", sample(7, 100)),
    "JSON": (
        '{"step": 10, "total_steps": 100, "epoch": 1, "loss": 0.25, "lr": 1e-3, "accuracy": "0.5"}',
        sample(10, 100, epoch=1, loss=0.25, lr=0.001, accuracy=0.5),
    ),
    "JSON, nested": (
        '{"time": "12:00", "train": {"global_step": 2, "train/loss": 4.5, "samples_per_second": 3}}',
        sample(2, loss=4.5, speed=3),
    ),
    "JSON behind a time": ('12:00:01 {"step": 3, "loss": 0.5}', sample(3, loss=0.5)),
    # Progress bars.
    "tqdm": ("Training:  33%|###3      | 200/600 [01:11<02:22,  2.81it/s]", sample(200, 600)),
    "tqdm with metrics": (
        "Epoch 2/5:  37%|███▋      | 37/100 [00:10<00:17,  3.60it/s, loss=0.25, acc=0.5]",
        sample(137, 500, epoch=2, epochs=5, loss=0.25, acc=0.5),
    ),
    "tqdm, lightning": (
        "Epoch 4:  65%|██████▍   | 11/17 [00:04<00:02,  2.34it/s, v_num=0]",
        sample(79, epoch=4),
    ),
    "a bar without a bar": ("epoch 1: 500/500", sample(1000, epoch=1)),
    "a bar without a bar, of known epochs": ("epoch 2/3: 20/500", sample(520, 1500, epoch=2, epochs=3)),
    # Numbers that JSON does not have.
    "nan": ("global_step: 100, loss: nan, learning_rate: 1e-05", sample(100, lr=1e-05, non_finite={"loss": "nan"})),
    "inf": ("step=3 loss=-inf", sample(3, non_finite={"loss": "-inf"})),
    "NaN in JSON": ('{"step": 3, "loss": NaN}', sample(3, non_finite={"loss": "nan"})),
    # Checkpoints.
    "saved checkpoint": ("saved checkpoint step=100", sample(100, checkpoint=100)),
    "Saving model checkpoint": (
        "[2026-01-02 03:04:05,678] [    INFO] - Saving model checkpoint to ./output/checkpoint-500",
        sample(checkpoint=500),
    ),
    "a checkpoint saved, another removed": ("saved checkpoint step=100, removed step=80", sample(100, checkpoint=100)),
    "a checkpoint file": ("wrote the model to /ckpt/step-00000120.pdckpt", sample(checkpoint=120)),
    "a checkpoint by iteration": ("[INFO] save model in output/iter_2000", sample(checkpoint=2000)),
}
NOT_PROGRESS = {
    "a setting": "epoch: 24",
    "another setting": "learning_rate                 : 3e-05",
    "an unlimited total": "max_steps                     :-1",
    "data that is prepared": " 37%|###7      | 37000/100000 [00:10<00:17,  3600.00it/s]",
    "the best epoch": "best epoch: 3/10",
    "a step of the schedule": "warmup step: 5000, decay step 100",
    "the loss of a validation": "Valid loss: 0.25",
    "warm-up": "Num warmup steps: 15101",
    "the interval of logging": "logging_steps                 :10",
    "evaluation by PaddleClas": "[Eval][Epoch 2][Avg]CELoss: 3.5, loss: 3.5, top5: 0.25",
    "evaluation by PaddleClas, a batch": "[Eval][Epoch 2][Iter: 10/20]CELoss: 3.5, loss: 3.5",
    "evaluation by PaddleVideo": "epoch:[  7/80 ] val step:0    loss: 0.03 ips: 5.5 instance/sec.",
    "evaluation by PaddleClas 2.0": "epoch:0  , valid step:50  , loss: 0.96875, lr: 0.000000, ips: 92.5 images/sec.",
    "the result of PaddleClas 1.x": "INFO: END valid  top1: 0.5, loss: 8773.9, ips: 92.5 images/sec.",
    "the result of PaddleVideo": "END epoch:7   val loss_avg: 0.5 top1_avg: 0.75 avg_ips: 5.5 instance/sec.",
    "loading by PaddleFormers": "[2026-01-05 10:11:12,131] [    INFO] - [DataLoad global_step: 12] cost: 0.125",
    "the test of PaddlePaddle v1": "Tester.cpp:111]  Test samples=97383 cost=2.5",
    "evaluation by PaddleDetection": "[01/02 03:04:05] ppdet.engine INFO: Eval iter: 100",
    "evaluation by PaddleOCR": "eval model::  50%|#####     | 50/100 [00:05<00:05, 10.00it/s]",
    "the result of PaddleOCR": "[2024/01/02 03:04:05] ppocr INFO: best metric, acc: 0.5, fps: 120.5, best_epoch: 3",
    "evaluation by PaddleSeg": "76/76 [==============================] - 10s 129ms/step - batch_cost: 0.125",
    "the result of PaddleSeg": "2024-01-02 03:04:05 [INFO]\t[EVAL] #Images: 76 loss: 0.5 Kappa: 0.75",
    "evaluation by PaddleNLP": "eval_loss: 0.5, eval_accuracy: 0.75, eval_runtime: 0.5, epoch: 5.0",
    "the size of an evaluation": "[2024-01-02 03:04:05,678] [    INFO] -   Total prediction steps = 3",
    "a download": "Downloading model: 37%|###   | 37/100 [00:10<00:17, 3.60MB/s]",
    "tokenizing": "Tokenizing: 37%|###   | 37/100 [00:10<00:17, 3.60 examples/s]",
    "a compiler": "[10/500] Building CXX object ops/relu.cc.o",
    "a date": "[02/04] launching",
    "an address": "LAUNCH INFO 2026-01-02 03:04:05,678 master 10.0.0.1:37777",
    "a checkpoint by epoch": "Already save model in ./output/PPLCNet_x1_0/epoch_2",
    "an empty line": "",
    "the hint of Model.fit": "The loss value printed in the log is the current step, and the metric is the average.",
    "a step that is too large": "step=99999999999",
    "a scheduler": "StepLR step 30",
    "another scheduler": "using MultiStepDecay step 30",
    "a batch of an evaluation": "evaluating step 5000",
    "the begin of an evaluation": "Evaluating at step 5000 ...",
    "settings as JSON": '{"lr": 0.1, "epochs": 10, "step": 30, "batch_size": 64, "loss": "mse"}',
    "settings as JSON, nested": '{"model": "resnet", "train": {"epoch": 10, "step": 5, "seed": 1}}',
    "settings as a dictionary": "config: {'step': 30, 'lr': 0.1, 'weight_decay': 0.0001}",
    "settings of argparse": "Namespace(step=30, lr=0.1, seed=7)",
    "a line of settings with an indent": '    "step": 30,',
    "a checkpoint that is removed": "removed old checkpoint step=10",
    "a checkpoint that is deleted": "[INFO] Deleting older checkpoint [output/checkpoint-500], step 500",
    "checkpoints that are kept": "keeping the checkpoints of step 40 and step 80",
}


@pytest.mark.parametrize(("line", "read"), FORMATS.values(), ids=FORMATS.keys())
def test_a_line_of_a_known_format_is_read(line: str, read: Sample):
    assert Parser(ProgressSpec(metrics=METRICS)).parse(line) == read


@pytest.mark.parametrize("line", NOT_PROGRESS.values(), ids=NOT_PROGRESS.keys())
def test_other_lines_are_not_taken_for_progress(line: str):
    assert Parser().parse(line) is None


def test_metrics_are_read_only_if_the_job_names_them_and_keep_the_name_from_the_job():
    line = "step 1/2 loss=0.5 MIOU=0.75 dice: 80%"
    assert Parser().parse(line) == sample(1, 2, loss=0.5)
    assert Parser(ProgressSpec(metrics=("mIoU", "dice"))).parse(line) == sample(1, 2, loss=0.5, mIoU=0.75, dice=80)


def test_a_metric_of_an_evaluation_is_read_but_not_its_loss():
    parser = Parser(ProgressSpec(metrics=("top1",)))
    assert parser.parse("[Eval][Epoch 2][Avg]CELoss: 3.5, loss: 3.5, top1: 0.25") == sample(top1=0.25)

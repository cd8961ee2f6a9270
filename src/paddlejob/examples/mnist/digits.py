"""Handwritten digits: MNIST if its files are given, otherwise digits drawn from seven strokes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import paddle

SIZE = 28
# The strokes of each digit: top, upper left, upper right, middle, lower left, lower right, bottom.
STROKES = ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")
# The top, left, height and width of each stroke, before jitter.
BOXES = ((4, 9, 3, 10), (4, 8, 10, 3), (4, 17, 10, 3), (12, 9, 3, 10), (13, 8, 10, 3), (13, 17, 10, 3), (21, 9, 3, 10))


def load(data_dir: Path | None, samples: int, train: bool) -> Any:
    if data_dir:
        name = "train" if train else "t10k"
        return paddle.vision.datasets.MNIST(
            image_path=os.fspath(data_dir / f"{name}-images-idx3-ubyte.gz"),
            label_path=os.fspath(data_dir / f"{name}-labels-idx1-ubyte.gz"),
            mode="train" if train else "test",
            transform=_scale,
            download=False,
            backend="pil",
        )
    return DrawnDigits(samples, seed=1) if train else DrawnDigits(max(500, samples // 5), seed=2)


def _scale(image: Any) -> Any:
    return np.asarray(image, "float32").reshape(1, SIZE, SIZE) / 127.5 - 1


class DrawnDigits(paddle.io.Dataset):  # type: ignore[misc]
    """Digits with jittered strokes, shifted, slanted and noisy."""

    def __init__(self, samples: int, seed: int) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 10, samples)
        self.images = np.stack([_draw(int(label), rng) for label in self.labels])

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.images[index], self.labels[index : index + 1]

    def __len__(self) -> int:
        return len(self.labels)


def _draw(digit: int, rng: np.random.Generator) -> Any:
    image = np.zeros((SIZE, SIZE), "float32")
    for drawn, (top, left, height, width) in zip(STROKES[digit], BOXES, strict=True):
        if drawn == "1":
            y, x = top + rng.integers(-1, 2), left + rng.integers(-1, 2)
            image[y : y + height, x : x + width] = rng.uniform(0.5, 1.0)
    slant = rng.uniform(-0.25, 0.25)
    rows = [np.roll(row, round(slant * (number - SIZE / 2))) for number, row in enumerate(image)]
    shifted = np.roll(np.stack(rows), rng.integers(-3, 4, 2), axis=(0, 1))
    return (shifted * 2 - 1 + rng.normal(0, 0.25, (SIZE, SIZE))).astype("float32")[None]

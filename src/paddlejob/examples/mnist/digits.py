"""Handwritten digits: MNIST where its files are given, else digits drawn from seven strokes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import paddle

SIZE = 28
# Which strokes a digit has: top, upper left, upper right, middle, lower left, lower right, bottom.
STROKES = ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")
# Each stroke's top-left corner, height and width, before it is shaken.
PLACES = ((4, 9, 3, 10), (4, 8, 10, 3), (4, 17, 10, 3), (12, 9, 3, 10), (13, 8, 10, 3), (13, 17, 10, 3), (21, 9, 3, 10))


def load(data_dir: Path | None, samples: int, train: bool) -> Any:
    if data_dir:
        name = "train" if train else "t10k"
        return paddle.vision.datasets.MNIST(
            image_path=os.fspath(data_dir / f"{name}-images-idx3-ubyte.gz"),
            label_path=os.fspath(data_dir / f"{name}-labels-idx1-ubyte.gz"),
            mode="train" if train else "test",
            transform=_scaled,
            download=False,
            backend="pil",
        )
    return Drawn(samples, seed=1) if train else Drawn(max(500, samples // 5), seed=2)


def _scaled(image: Any) -> Any:
    return np.asarray(image, "float32").reshape(1, SIZE, SIZE) / 127.5 - 1


class Drawn(paddle.io.Dataset):  # type: ignore[misc]
    """Digits with every stroke out of place, the whole shifted and slanted, under noise."""

    def __init__(self, samples: int, seed: int) -> None:
        super().__init__()
        chance = np.random.default_rng(seed)
        self.labels = chance.integers(0, 10, samples)
        self.images = np.stack([_draw(int(label), chance) for label in self.labels])

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.images[index], self.labels[index : index + 1]

    def __len__(self) -> int:
        return len(self.labels)


def _draw(digit: int, chance: np.random.Generator) -> Any:
    image = np.zeros((SIZE, SIZE), "float32")
    for drawn, (top, left, height, width) in zip(STROKES[digit], PLACES, strict=True):
        if drawn == "1":
            y, x = top + chance.integers(-1, 2), left + chance.integers(-1, 2)
            image[y : y + height, x : x + width] = chance.uniform(0.5, 1.0)
    slant = chance.uniform(-0.25, 0.25)
    rows = [np.roll(row, round(slant * (number - SIZE / 2))) for number, row in enumerate(image)]
    shifted = np.roll(np.stack(rows), chance.integers(-3, 4, 2), axis=(0, 1))
    return (shifted * 2 - 1 + chance.normal(0, 0.25, (SIZE, SIZE))).astype("float32")[None]

"""Images to classify: Oxford flowers if their files are given, otherwise generated coloured shapes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import paddle

SIZE = 32
SHAPES = 6


class Images(NamedTuple):
    """Training and held-out data sets of (image, class), and the number of classes."""

    train: Any
    held_out: Any
    classes: int


def load(data_dir: Path | None, samples: int) -> Images:
    if data_dir:
        return Images(_flowers(data_dir, "train"), _flowers(data_dir, "valid"), classes=102)
    return Images(Shapes(samples, seed=1), Shapes(max(200, samples // 5), seed=2), SHAPES)


def _flowers(data_dir: Path, mode: str) -> Any:
    """Reads the three published files: 102flowers.tgz, imagelabels.mat and setid.mat."""
    from paddle.vision import transforms

    steps = [transforms.Resize((SIZE, SIZE)), transforms.Transpose(), transforms.Normalize(127.5, 127.5)]
    data = paddle.vision.datasets.Flowers(
        data_file=os.fspath(data_dir / "102flowers.tgz"),
        label_file=os.fspath(data_dir / "imagelabels.mat"),
        setid_file=os.fspath(data_dir / "setid.mat"),
        mode=mode,
        transform=transforms.Compose(steps),
        download=False,
        backend="pil",
    )
    return ZeroBased(data)


class ZeroBased(paddle.io.Dataset):  # type: ignore[misc]
    """Shifts the classes of the flowers, which start at 1."""

    def __init__(self, data: Any) -> None:
        super().__init__()
        self.data = data

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image, label = self.data[index]
        return image, int(label[0]) - 1

    def __len__(self) -> int:
        return len(self.data)


class Shapes(paddle.io.Dataset):  # type: ignore[misc]
    """Disc, square, ring, cross, horizontal or vertical stripes, in random colours and positions, with noise."""

    def __init__(self, samples: int, seed: int) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, SHAPES, samples)
        self.images = np.stack([_draw(int(label), rng) for label in self.labels])

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.images[index], int(self.labels[index])

    def __len__(self) -> int:
        return len(self.labels)


def _draw(shape: int, rng: np.random.Generator) -> Any:
    row, column = np.mgrid[0:SIZE, 0:SIZE]
    y, x = row - rng.integers(12, 20), column - rng.integers(12, 20)
    half = rng.integers(6, 10)
    box = np.maximum(abs(x), abs(y)) <= half
    distance = np.hypot(x, y)
    mask = (
        distance <= half,
        box,
        (distance <= half) & (distance >= half - 3),
        box & ((abs(x) <= 1) | (abs(y) <= 1)),
        box & (row // 2 % 2 == 0),
        box & (column // 2 % 2 == 0),
    )[shape]
    colour = rng.uniform(0.4, 1.0, (3, 1, 1))
    return (mask * colour + rng.normal(0, 0.25, (3, SIZE, SIZE))).astype("float32")

"""Wide & Deep on click logs, trained with parameter servers: the same program runs as server and as worker.

The wide part has one weight per category. The deep part feeds an embedding of the categories and the counts through
three fully connected layers. The servers hold both tables; the role comes from the environment.
"""

from __future__ import annotations

import os

os.environ.setdefault("GLOG_minloglevel", "2")

import paddle
import ps_loop
from criteo import CATEGORIES, HASH_SPACE
from paddle.static.nn import fc, sparse_embedding

EMBEDDING = 8
LAYERS = (64, 32, 16)


def wide_and_deep(inputs: ps_loop.Inputs) -> ps_loop.Variable:
    """Build the network and return its logit."""
    ids = paddle.reshape(inputs.ids, [-1, 1])
    weights = sparse_embedding(ids, [HASH_SPACE, 1], param_attr=ps_loop.table("wide"))
    wide = paddle.sum(paddle.reshape(weights, [-1, CATEGORIES]), axis=1, keepdim=True)

    vectors = sparse_embedding(ids, [HASH_SPACE, EMBEDDING], param_attr=ps_loop.table("deep"))
    deep = paddle.concat([paddle.reshape(vectors, [-1, CATEGORIES * EMBEDDING]), inputs.counts], axis=1)
    for width in LAYERS:
        deep = fc(deep, width, activation="relu")
    return wide + fc(deep, 1) + fc(inputs.counts, 1)


if __name__ == "__main__":
    ps_loop.run(wide_and_deep, tables=["wide", "deep"])

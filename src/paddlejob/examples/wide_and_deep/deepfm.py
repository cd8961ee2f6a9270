"""DeepFM on click logs, trained with parameter servers: the same program runs as server and as worker.

A factorization machine weighs every category and every pair of categories; a deep network shares its embedding, so
no feature crosses are configured by hand. The servers hold the tables.
"""

from __future__ import annotations

import os

os.environ.setdefault("GLOG_minloglevel", "2")

import paddle
import ps_loop
from criteo import CATEGORIES, HASH_SPACE
from paddle.static.nn import fc, sparse_embedding

EMBEDDING = 8
LAYERS = (64, 32)


def deepfm(inputs: ps_loop.Inputs) -> ps_loop.Variable:
    """Build the network and return its logit."""
    ids = paddle.reshape(inputs.ids, [-1, 1])
    weights = sparse_embedding(ids, [HASH_SPACE, 1], param_attr=ps_loop.table("first_order"))
    first_order = paddle.sum(paddle.reshape(weights, [-1, CATEGORIES]), axis=1, keepdim=True)

    vectors = sparse_embedding(ids, [HASH_SPACE, EMBEDDING], param_attr=ps_loop.table("factors"))
    factors = paddle.reshape(vectors, [-1, CATEGORIES, EMBEDDING])

    deep = paddle.concat([paddle.reshape(factors, [-1, CATEGORIES * EMBEDDING]), inputs.counts], axis=1)
    for width in LAYERS:
        deep = fc(deep, width, activation="relu")
    return first_order + _pairs(factors) + fc(deep, 1) + fc(inputs.counts, 1)


def _pairs(factors: ps_loop.Variable) -> ps_loop.Variable:
    """The sum of the inner products of all pairs of columns, in linear time."""
    square_of_sum = paddle.square(paddle.sum(factors, axis=1))
    sum_of_squares = paddle.sum(paddle.square(factors), axis=1)
    return 0.5 * paddle.sum(square_of_sum - sum_of_squares, axis=1, keepdim=True)


if __name__ == "__main__":
    ps_loop.run(deepfm, tables=["first_order", "factors"])

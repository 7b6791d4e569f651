"""Runs in counted guests: a model of GluonCV that was exported (experiments/services), in MXNet's library.

To import mxnet is 7.8 G instructions, of every VM in every run; the library alone is ready after 0.6 G. What
computes a request is the same library with the same threads.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from .gluoncv_inside import run, shape_of

EXPORTED = "EXPORTED"
CLASSES = 10
"""What a model for CIFAR-10 tells apart."""

CPU = 1
"""MXNet's number for it."""

INPUT = b"data"


def load(model: str) -> Callable[[], None]:
    """One request to the model, which has been made once."""
    home = Path(os.environ[EXPORTED])
    library = ctypes.CDLL(str(home / "lib/libmxnet.so"))
    library.MXGetLastError.restype = ctypes.c_char_p
    graph = (home / f"models/{model}-symbol.json").read_bytes()
    weights = (home / f"models/{model}-0000.params").read_bytes()
    shape = shape_of(model)
    size = math.prod(shape)
    predictor, chance = ctypes.c_void_p(), random.Random(model)
    request = (ctypes.c_float * size)(*(chance.random() for _ in range(size)))
    answer = (ctypes.c_float * CLASSES)()

    def call(name: str, *arguments: object) -> None:
        if getattr(library, name)(*arguments):
            raise RuntimeError(library.MXGetLastError().decode())

    def work() -> None:
        call("MXPredSetInput", predictor, INPUT, request, size)
        call("MXPredForward", predictor)
        call("MXPredGetOutput", predictor, 0, answer, CLASSES)

    names, dimensions = (ctypes.c_char_p * 1)(INPUT), (ctypes.c_uint * len(shape))(*shape)
    inputs = (1, names, (ctypes.c_uint * 2)(0, len(shape)), dimensions)
    call("MXPredCreate", graph, weights, len(weights), CPU, 0, *inputs, ctypes.byref(predictor))
    work()
    return work


if __name__ == "__main__":
    run(sys.argv[1:], load)

"""GluonCV's models as MXNet deploys them: FOLDER MODEL… Run by the Python of GluonCV's environment. Into the
folder go their graphs and random weights, MXNet's library, and what starts a program beside them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

SHAPE = (1, 3, 32, 32)
"""Of what all of these models take."""

SEED = 1
"""The same weights each time, so that a guest that is made anew is the same guest."""


def main(home: Path, models: Sequence[str]) -> None:
    """All that a guest needs."""
    import mxnet
    from gluoncv import model_zoo

    shutil.rmtree(home, ignore_errors=True)
    for name in ("bin", "lib", "models"):
        (home / name).mkdir(parents=True)
    for library in Path(mxnet.__file__).parent.glob("*.so*"):
        shutil.copy(library, home / "lib")
    shutil.copy(Path(__file__).with_name("exported.sh"), home / "bin/start")
    mxnet.random.seed(SEED)
    for model in models:
        net = model_zoo.get_model(model, pretrained=False)
        net.initialize(mxnet.init.Xavier())
        net.hybridize(static_alloc=True)
        net(mxnet.ndarray.random.uniform(shape=SHAPE)).wait_to_read()
        net.export(str(home / "models" / model))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

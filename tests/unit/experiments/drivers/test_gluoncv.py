"""What runs in GluonCV's environment, with a model that only sleeps; and how its absence is told."""

from __future__ import annotations

import io
import json
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.load_tool import read_sojourns
from experiments.drivers import gluoncv
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.gluoncv_inside import main, offsets_ns, serve, shape_of
from experiments.places.places import Anywhere


@given(st.integers(0, 2**31), st.floats(1, 500), st.floats(0.1, 5))
def test_arrivals_follow_from_seed_and_rate_alone(seed: int, rate_per_s: float, total_s: float) -> None:
    offsets = offsets_ns(seed, rate_per_s, total_s)
    assert offsets == offsets_ns(seed, rate_per_s, total_s)
    assert offsets == sorted(offsets)
    assert offsets == [
        offset for offset in offsets_ns(seed, rate_per_s, 2 * total_s) if offset in set(offsets)
    ]
    assert all(0 <= offset <= total_s * 1e9 for offset in offsets)


def test_a_slow_model_makes_requests_wait_and_moves_none() -> None:
    start_ns = time.monotonic_ns()
    done = serve(lambda: time.sleep(0.02), [0, 1_000_000, 2_000_000], start_ns, start_ns + 10**10)
    assert [queue + service for queue, service, _ in done] == [sojourn for _, _, sojourn in done]
    assert done[2][2] >= 3 * 20_000_000 - 2_000_000


def test_the_files_are_those_of_the_load_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{time.monotonic_ns()}\n"))
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def prepare(model: str) -> Callable[[], None]:
        assert model == "cifar_resnet20_v1"
        return lambda: None

    asked = ["--model", "cifar_resnet20_v1", "--rate", "200", "--seed", "3"]
    main([*asked, "--warmup", "0.1", "--seconds", "0.2", "--folder", str(tmp_path)], prepare)
    arrivals = array("Q", (tmp_path / "arrivals").read_bytes())
    measured = [offset for offset in arrivals if offset >= 100_000_000]
    result = json.loads((tmp_path / "out.json").read_text())
    assert list(arrivals) == offsets_ns(3, 200, 0.1 + 0.2)
    assert result["completed"] == len(read_sojourns(tmp_path / "samples")) == len(measured)
    assert result["unfinished"] == 0


def test_a_model_gets_what_it_takes() -> None:
    assert shape_of("mobilenet1.0") == (1, 3, 224, 224)
    assert shape_of("cifar_resnet20_v1") == (1, 3, 32, 32)
    assert shape_of("i3d_resnet50_v1_kinetics400") == (1, 3, 16, 112, 112)
    assert shape_of("slowfast_4x16_resnet50_kinetics400") == (1, 3, 36, 224, 224)


def test_an_environment_that_is_not_there_is_named_with_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path / "none"))
    (tmp_path / "python3.11").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert DRIVERS["gluoncv-action-recognition"].missing() == (
        f"{tmp_path / 'none'}: no environment: `python -m experiments.drivers gluoncv` makes one"
    )
    monkeypatch.setenv("PATH", "")
    assert DRIVERS["gluoncv-action-recognition"].missing() == (
        f"{tmp_path / 'none'}: no environment: {gluoncv.NO_PYTHON}"
    )


def test_an_environment_without_mxnet_says_what_python_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho Traceback >&2; echo \"No module named 'mxnet'\" >&2; exit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path))
    assert DRIVERS["gluoncv-image-classification"].missing() == f"{tmp_path}: mxnet: No module named 'mxnet'"


def test_without_the_right_python_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=r"python3\.11: not found"):
        gluoncv.make_environment(tmp_path / "environment")
    assert not (tmp_path / "environment").exists()


def test_the_cache_is_where_the_user_has_it() -> None:
    assert gluoncv.environment_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/dasec/gluoncv")
    assert gluoncv.environment_folder({"XDG_CACHE_HOME": "/c", "DASEC_GLUONCV": "/g"}) == Path("/g")


def test_the_library_is_imported_and_not_the_driver_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the environment: its Python has a mxnet and a gluoncv that only say who they are."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "mxnet.py").touch()
    (libraries / "gluoncv.py").write_text("raise SystemExit('the library')\n")
    python = tmp_path / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH={libraries} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path))
    order = WorkOrder("one", 1, 10, 1, 0.1, 0.1, tmp_path / "order")
    with pytest.raises(Refusal, match="one: ended early, exit status 1: the library"):
        DRIVERS["gluoncv-image-classification"].start(order, Anywhere()).await_up()

"""What runs in GluonCV's environment, with a model that only sleeps; and how its absence is told."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.kit.process import name_of, thread_ids
from dasec.lab.load_tool import read_sojourns
from experiments.drivers import gluoncv, gluoncv_exported, services
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.gluoncv import IMAGES, IN_GUESTS
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
    assert result["cpu"]["window_s"] > 0.1, "it begins when the process is there, if need be a little late"
    assert result["cpu"]["total_s"] > 0 <= result["cpu"]["waited_s"]


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


STAND_IN = {
    "mxnet.py": """
import types
init = types.SimpleNamespace(Xavier=lambda: None)
def uniform(shape):
    assert shape == (1, 3, 32, 32)
ndarray = types.SimpleNamespace(random=types.SimpleNamespace(uniform=uniform))
""",
    "gluoncv.py": """
import types
class Net:
    def initialize(self, weights): ...
    def hybridize(self, static_alloc): ...
    def __call__(self, request): return types.SimpleNamespace(wait_to_read=lambda: None)
model_zoo = types.SimpleNamespace(get_model=lambda model, pretrained: Net())
""",
}
"""Libraries that infer nothing."""


def stand_in(folder: Path, libraries: Mapping[str, str]) -> None:
    """An environment whose Python has these."""
    (folder / "libraries").mkdir()
    for name, text in libraries.items():
        (folder / "libraries" / name).write_text(text)
    python = folder / "bin/python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder / "libraries"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)


def test_the_library_is_imported_and_not_the_driver_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, {"mxnet.py": "", "gluoncv.py": "raise SystemExit('the library')\n"})
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path))
    order = WorkOrder("one", 1, 10, 1, 0.1, 0.1, tmp_path / "order")
    with pytest.raises(Refusal, match="one: ended early, exit status 1: the library"):
        IMAGES.start(order, Anywhere()).await_up()


def test_a_run_comes_to_its_end_and_all_of_its_threads_have_the_librarys_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, STAND_IN)
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path))
    order = WorkOrder("one", 1, 100, 1, 0.1, 0.3, tmp_path / "order", {"model": "cifar_resnet20_v1"})
    running = IMAGES.start(order, Anywhere())
    try:
        running.await_up()
        assert {name_of(pid, tid) for pid, tid in thread_ids(running.pids())} == {IMAGES.vcpu_names[0]}
        running.begin(time.monotonic_ns() + 10_000_000)
        done = running.finish()
    finally:
        running.stop()
    assert done.work == sum(offset >= 100_000_000 for offset in offsets_ns(1, 100, 0.1 + 0.3))
    assert done.own_cpu


def test_an_oracle_is_only_where_others_burst_beside_it() -> None:
    order = WorkOrder("one", 2, 10, 1, 0.1, 0.1, Path())
    beside = replace(order, options={"background": "3"})
    assert (IMAGES.vcpus(order), IMAGES.critical(order)) == (2, ())
    assert (IMAGES.vcpus(beside), IMAGES.critical(beside)) == (5, ("gluoncv",))


def test_a_thread_spins_or_sleeps_by_openmps_own_word_or_not_at_all() -> None:
    order = WorkOrder("one", 2, 10, 1, 0.1, 0.1, Path(), {"wait-policy": "never"})
    with pytest.raises(Refusal, match="wait-policy: must be one of , active, passive, got 'never'"):
        IMAGES.critical(order)


def test_where_only_exported_models_are_they_are_asked_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a counted guest: no environment, and a program that becomes what it is told."""
    program = tmp_path / IMAGES.program
    program.write_text('#!/bin/sh\necho "$OMP_WAIT_POLICY $OMP_NUM_THREADS $*"\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("DASEC_GLUONCV", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(services, "BUILT", tmp_path)
    options = {"model": IN_GUESTS[0], "wait-policy": "passive"}
    order = WorkOrder("one", 2, 10, 1, 0.1, 0.1, tmp_path / "order", options)
    said = f"passive 2 {sys.executable} -m experiments.drivers.gluoncv_exported --model {IN_GUESTS[0]} "
    with pytest.raises(Refusal, match=f"one: ended early, exit status 3: {said}"):
        IMAGES.start(order, Anywhere()).await_up()


class Library:
    """MXNet's, with a predictor that only counts what it has answered; `broken` is a call that fails."""

    def __init__(self, broken: str = "") -> None:
        self.inputs: list[bytes] = []
        self.answered = self.set = 0
        for name in ("MXPredCreate", "MXPredSetInput", "MXPredForward", "MXPredGetOutput"):
            known = getattr(self, f"_{name}")
            setattr(self, name, lambda *words, known=known, name=name: 1 if name == broken else known(*words))
        self.MXGetLastError: Callable[[], bytes] = lambda: b"what MXNet says"

    def _MXPredCreate(self, *words: object) -> int:  # noqa: N802  # MXNet's name
        self.inputs = [word for word in words if isinstance(word, bytes)]
        return 0

    def _MXPredSetInput(self, _made: object, name: bytes, request: object, size: int) -> int:  # noqa: N802
        assert name == b"data"
        assert size == 3 * 32 * 32
        self.set += 1
        return 0

    def _MXPredForward(self, _made: object) -> int:  # noqa: N802
        assert self.set == self.answered + 1
        self.answered += 1
        return 0

    def _MXPredGetOutput(self, _made: object, _index: int, _answer: object, size: int) -> int:  # noqa: N802
        assert size == gluoncv_exported.CLASSES
        return 0


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a guest has of one model."""
    (tmp_path / "models").mkdir()
    (tmp_path / f"models/{IN_GUESTS[0]}-symbol.json").write_bytes(b"graph")
    (tmp_path / f"models/{IN_GUESTS[0]}-0000.params").write_bytes(b"weights")
    monkeypatch.setenv("EXPORTED", str(tmp_path))
    return tmp_path


def test_an_exported_model_is_made_of_its_files_and_answers_each_request(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library()
    there = {str(exported / "lib/libmxnet.so"): library}
    monkeypatch.setattr("ctypes.CDLL", there.__getitem__)
    work = gluoncv_exported.load(IN_GUESTS[0])
    assert library.inputs == [b"graph", b"weights"]
    assert library.answered == 1
    work()
    assert library.answered == 2


@pytest.mark.parametrize("broken", ["MXPredCreate", "MXPredForward"])
@pytest.mark.usefixtures("exported")
def test_what_mxnet_complains_of_is_said(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: Library(broken))
    with pytest.raises(RuntimeError, match="what MXNet says"):
        gluoncv_exported.load(IN_GUESTS[0])


def test_the_models_that_guests_may_be_asked_for_are_those_that_are_exported() -> None:
    recipe = (Path(services.__file__).parents[1] / "services/Makefile").read_text()
    assert f"/gluoncv {' '.join(IN_GUESTS)}\n" in recipe

"""The driver of TailBench against an installation that only behaves like one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkDone, WorkOrder
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.lats import FORMATS
from experiments.drivers.servers import SERVERS
from experiments.drivers.tailbench import data_folder, is_listened_at
from experiments.drivers.tailbench_apps import APPLICATIONS
from experiments.drivers.tailbench_run import Asked
from experiments.places.places import Anywhere

from .faketailbench import install

MASSTREE = DRIVERS["tailbench-masstree"]


def order(folder: Path, rate_per_s: float = 200, **options: str) -> WorkOrder:
    return WorkOrder("masstree-0", 2, rate_per_s, 7, 0.1, 0.2, folder, {"load-s": "0", **options})


def do(asked: WorkOrder) -> WorkDone:
    running = MASSTREE.start(asked, Anywhere())
    try:
        assert running.pids()
        running.begin(time.monotonic_ns())
        return running.finish()
    finally:
        running.stop()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tailbench"
    monkeypatch.setenv("TAILBENCH_DIR", str(folder))
    return folder


@pytest.mark.parametrize("mode", ["integrated", "networked"])
@pytest.mark.parametrize("form", ["v0.9", "plus"])
def test_every_mode_and_format_yields_its_requests(root: Path, tmp_path: Path, mode: str, form: str) -> None:
    install(root, form)
    outcome = do(order(tmp_path / "order", mode=mode, format=form))
    assert (outcome.work, outcome.unit) == (40, "requests")
    assert outcome.latencies is not None
    assert outcome.latencies.count == 40
    assert outcome.samples is not None
    assert outcome.samples.stat().st_size == 40 * 24
    assert outcome.arrivals is None
    assert (tmp_path / "order/dates").exists() == (form == "plus")
    assert (root / "masstree/lats.bin").read_bytes() == b"of an older run"


def test_the_seed_is_told(root: Path, tmp_path: Path) -> None:
    """The stand-in draws its dates from it, as TailBench draws its schedule."""
    install(root, "plus")
    for number in range(2):
        do(order(tmp_path / str(number), format="plus"))
    one, two = ((tmp_path / str(number) / "dates").read_bytes() for number in range(2))
    assert one == two != b""


def test_two_at_once_do_not_write_to_the_same_file(root: Path, tmp_path: Path) -> None:
    install(root)
    running = [MASSTREE.start(order(tmp_path / str(number)), Anywhere()) for number in range(2)]
    for one in running:
        one.begin(time.monotonic_ns())
    outcomes = [one.finish() for one in running]
    for one in running:
        one.stop()
    assert [outcome.work for outcome in outcomes] == [40, 40]


def test_there_is_always_a_warm_up(root: Path, tmp_path: Path) -> None:
    """Without one v0.9 measures nothing."""
    install(root)
    asked = WorkOrder("masstree-0", 2, 200, 7, 0.0, 0.2, tmp_path / "order", {"load-s": "0"})
    assert do(asked).work == 40


def test_an_empty_file_is_a_failure(root: Path, tmp_path: Path) -> None:
    install(root, flaw="empty")
    with pytest.raises(Refusal, match="masstree-0: lats.bin is empty: the measured part was never entered"):
        do(order(tmp_path / "order"))


def test_the_fault_of_v09_is_named(root: Path, tmp_path: Path) -> None:
    install(root, flaw="short")
    with pytest.raises(Refusal, match=r"recvfull\(\) cannot take: TailBench\+\+ has mended it"):
        do(order(tmp_path / "order", mode="networked"))


def test_a_program_that_fails_says_why(root: Path, tmp_path: Path) -> None:
    install(root)
    (root / "masstree/input").unlink()
    with pytest.raises(Refusal, match="not in the application's folder"):
        do(order(tmp_path / "order"))


@pytest.mark.parametrize(
    ("rate_per_s", "options", "complaint"),
    [
        (0, {}, "rate: must be above 0"),
        (200, {"mode": "local"}, "mode: must be one of integrated, networked"),
        (200, {"format": "v1"}, "format: must be one of v0.9, plus"),
        (200, {"load-s": "soon"}, "load-s: must be a whole number from 0 on"),
        (
            200,
            {"qps": "3"},
            "qps: is no option of this application: it has background, burst-us, bursts-per-s,"
            " client-threads, format, gate, load-s, mode",
        ),
        (200, {"gate": "ajar"}, "gate: must be one of true, false"),
        (200, {"gate": "true", "mode": "networked"}, "gate: is of mode integrated"),
        (200, {"background": "some"}, "background: must be a whole number from 0 on"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_before_anything_starts(
    root: Path, tmp_path: Path, rate_per_s: float, options: dict[str, str], complaint: str
) -> None:
    install(root)
    with pytest.raises(Refusal, match=f"masstree-0: {complaint}"):
        MASSTREE.start(order(tmp_path / "order", rate_per_s, **options), Anywhere())
    assert not (tmp_path / "order").exists()


def test_without_a_gate_it_says_how_to_make_one(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(root)
    monkeypatch.setenv("DASEC_GATE", str(tmp_path / "nowhere.so"))
    with pytest.raises(Refusal, match="nowhere.so: not found: make -C experiments/services gate"):
        MASSTREE.start(order(tmp_path / "order", gate="true"), Anywhere())


def test_all_its_threads_are_critical_where_there_is_background_beside_them(tmp_path: Path) -> None:
    driver = SERVERS["tailbench-masstree"]
    assert driver.vcpu_names == ("mttest_integrat", "bg-*")
    assert driver.critical(order(tmp_path)) == ()
    beside = order(tmp_path, background="3")
    assert driver.critical(beside) == ("mttest_integrat",)
    assert driver.vcpus(beside) == 2 + 3


def test_behind_the_gate_so_many_more_are_asked_for_that_all_are_at_work_till_the_end(tmp_path: Path) -> None:
    """Gaps are random: the sum of 100 has a standard deviation of 10 of them."""
    told = WorkOrder("masstree-0", 2, 100, 7, 0.25, 0.75, tmp_path, {})
    plain, gated = (
        Asked(told, {}, APPLICATIONS["masstree"], False, FORMATS["v0.9"], 5, 1, gate)
        for gate in (False, True)
    )
    assert (plain.warmup, plain.measured, plain.beyond) == (25, 75, 0)
    assert (gated.warmup, gated.measured, gated.beyond) == (25, 75, 40)
    assert gated.variables(1)["TBENCH_MAXREQS"] == "115"


def test_what_is_missing_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (MASSTREE.missing() or "").endswith("build masstree in TAILBENCH_DIR")
    install(root)
    assert MASSTREE.missing() is None
    monkeypatch.delenv("TAILBENCH_DIR")
    assert (MASSTREE.missing() or "").startswith("TAILBENCH_DIR: not set")


def test_the_inputs_are_where_the_installation_says(root: Path) -> None:
    assert data_folder(root) == root / "tailbench.inputs"
    install(root)
    assert data_folder(root) == Path("/data/tailbench.inputs")


def test_a_port_is_seen_without_connecting(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(
        "  sl  local_address rem_address   st\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n"
        "   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000\n"
    )
    assert is_listened_at(8080, tmp_path)
    assert not is_listened_at(8081, tmp_path)

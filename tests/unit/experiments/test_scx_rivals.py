"""What schedulers of others have beside ours: the published is what was kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.studies.sched_ext import rivals
from experiments.studies.sched_ext.rivals import cells, draw, table

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
README = ROOT / "experiments/studies/sched_ext/README.md"
CELLS = dict(cells())


def run(arm: str, *p99s_ms: float) -> dict[str, object]:
    """One VM for each latency; the mean is half of it."""
    vms = [
        {
            "latencies": {"mean_ns": p99 * 5e5, "percentiles_ns": {"p99": p99 * 1e6}},
            "background_cores": 1.0,
            "throughput_per_s": 10.0,
            "cores": 0.5,
        }
        for p99 in p99s_ms
    ]
    return {"arm": arm, "tenants": vms}


def test_the_worst_vm_is_the_one_that_has_most_of_its_own_latency_on_the_plain_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run("rival:scx_other --an-option", 5, 60), run("scx", 5, 20), run("none", 10, 40)]
    (tmp_path / "cell.jsonl").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    monkeypatch.setattr(rivals, "KEPT", tmp_path)
    ((name, (ours, other)),) = cells()
    assert (name, ours.name, other.name) == ("cell", "ours", "scx_other")
    assert ours.worst == (0.5, 0.5)
    assert other.worst == (1.5, 1.5)
    assert other.ratios == (1.3, 1.3)
    assert (other.background, other.requests) == (1, 1)


@pytest.mark.parametrize("cell", CELLS)
def test_the_page_has_the_table_of_the_kept_runs(cell: str) -> None:
    assert f"\n\n{table(CELLS[cell])}\n\n" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("cell", CELLS)
def test_ours_is_first_and_bpfland_second(cell: str) -> None:
    _, ours, second, *others = CELLS[cell]
    assert (ours.name, second.name) == ("ours", "scx_bpfland")
    assert ours.ratios.p99 < second.ratios.p99 < min(row.ratios.p99 for row in others)
    assert ours.ratios.mean < second.ratios.mean < min(row.ratios.mean for row in others)


@pytest.mark.parametrize(
    ("page", "cell"), [("sched-ext", "free"), ("sched-ext", "nested"), ("findings", "free")]
)
def test_the_pages_say_what_the_first_two_have(page: str, cell: str) -> None:
    _, ours, second, *_ = CELLS[cell]
    said = " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").split())
    assert f"{second.ratios}" in said
    assert f"where ours has {ours.ratios}" in said


@pytest.mark.parametrize("cell", CELLS)
def test_no_scheduler_leaves_more_than_a_fiftieth_of_the_background_undone(cell: str) -> None:
    for row in CELLS[cell]:
        assert row.background > 0.975, row


@pytest.mark.parametrize("cell", CELLS)
def test_all_requests_were_answered_under_every_scheduler(cell: str) -> None:
    for row in CELLS[cell]:
        assert row.requests == pytest.approx(1, abs=0.02), row


def test_every_scheduler_is_in_the_picture(tmp_path: Path) -> None:
    draw(tmp_path / "rivals.png")
    assert (tmp_path / "rivals.png").stat().st_size > 0

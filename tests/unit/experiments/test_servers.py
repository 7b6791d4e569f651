"""Experiments with Debian's servers in counted guests, without a guest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.servers import SERVERS
from experiments.plan.blocks import blocks_of
from experiments.plan.file import told_in
from experiments.plan.order import Order
from experiments.plan.servers import Servers
from experiments.results.effects import effect
from experiments.run.guests import task_for
from experiments.run.planned import experiment_in
from experiments.studies.servers.published import RESULTS, Cell, cells, table, words

HERE = Path(__file__).resolve().parents[3] / "experiments/studies/servers"
FILES = sorted(HERE.glob("*.toml"))

ONE = """
cpus = 4
policies = []
[[server]]
driver = "memcached"
vms = [2]
rates_per_s = [100]
request_us = 50
"""


def read(file: Path) -> Servers:
    found = experiment_in(told_in(file), file)
    assert isinstance(found, Servers)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_a_guest_is_told_its_block_in_a_word_that_fits(file: Path) -> None:
    experiment = read(file)
    for block in blocks_of(experiment.cells.possible, experiment.arms, 1, experiment.seed):
        told = Order.read(task_for(experiment, block).word)
        assert (told.experiment, told.block) == (dataclasses.replace(experiment, title=""), block)


def test_a_vm_has_the_servers_threads_and_background_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE + "threads = 2\nbackground = 3\nbursts_per_s = 30\n")
    (cell,) = read(file).cells.possible
    assert [tenant.name for tenant in cell.scenario.tenants] == ["memcached-0", "memcached-1"]
    assert {tenant.vcpus for tenant in cell.scenario.tenants} == {5}
    assert dict(cell.scenario.tenants[0].options)["bursts-per-s"] == "10"
    assert (cell.ratio, cell.utilisation) == (2.5, round(2 * (100 * 50 + 30 * 10_000) / 4e6, 3))


def test_a_guest_gets_the_programs_of_its_servers(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE)
    assert read(file).packages == {"memcached": "memcached"}


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("background = 2\n", "background and bursts_per_s go together"),
        ('options = { colour = "red" }\n', "any: colour: is no option of this application"),
        ('name = "x"\nspeed = 3\n', "server[0].speed"),
    ],
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, more: str, complaint: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(ONE + more)
    with pytest.raises(Refusal) as refused:
        read(file)
    assert refused.value.status is ExitStatus.USAGE
    assert complaint in "\n".join(refused.value.lines)


def test_a_server_that_nobody_knows_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(ONE.replace('"memcached"', '"oracle"'))
    with pytest.raises(Refusal, match="oracle is unknown: known are memcached, redis, nginx, go, java"):
        read(file)


def test_it_does_not_run_on_a_host(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('place = "host"\n' + ONE)
    with pytest.raises(Refusal, match="runs in the testbed"):
        read(file)


def test_hosts_have_the_same_drivers() -> None:
    assert all(DRIVERS[name] is driver for name, driver in SERVERS.items())


README = (HERE / "README.md").read_text(encoding="utf-8")
KEPT = tuple(cells())


def test_the_kept_runs_give_the_published_tables() -> None:
    assert KEPT
    assert table(KEPT) in README
    assert words(KEPT) in README


@pytest.mark.parametrize("cell", KEPT, ids=lambda cell: str(cell.file))
def test_a_kept_cell_is_of_a_file_that_is_there(cell: Cell) -> None:
    (asked,) = read(HERE / f"{cell.file}.toml").cells.possible
    assert {one.cell for one in cell.blocks} == {asked.name}
    assert abs(cell.busy - asked.utilisation) < 0.1, "request_us says how busy a cell is"


@pytest.mark.parametrize("cell", KEPT, ids=lambda cell: str(cell.file))
def test_every_arm_answered_all_requests_and_did_all_work(cell: Cell) -> None:
    for run in (run for block in cell.blocks for run in block.runs):
        assert all(one.errors == one.unfinished == 0 for one in run.tenants)
        requests, cores = cell.done(run.arm)
        assert requests == pytest.approx(1, abs=0.02)
        assert cores == pytest.approx(1, abs=0.05)


def test_what_the_pages_say_of_each_server_is_so() -> None:
    said = {
        "go-busy": {"critical": "nothing", "oracle": "nothing", "scx": "gain"},
        "go-full": {"critical": "nothing", "oracle": "nothing", "scx": "nothing"},
        "memcached-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "nginx-busy": {"critical": "gain", "oracle": "gain", "scx": "gain"},
        "redis-busy": {"critical": "gain", "oracle": "nothing", "scx": "nothing"},
        "redis-shared": {"critical": "gain", "oracle": "gain", "scx": "gain"},
    }
    assert {cell.file: {arm: cell.word(arm) for arm in said[cell.file]} for cell in KEPT} == said
    go, full, memcached, nginx, redis, shared = KEPT
    for cell, arm, mean, p99 in (
        (go, "critical", 0.95, 0.97),
        (go, "oracle", 0.84, 0.71),
        (go, "scx", 0.58, 0.46),
        (full, "critical", 0.77, 0.90),
        (full, "oracle", 0.75, 0.78),
        (full, "scx", 0.50, 0.50),
        (memcached, "critical", 0.76, 0.74),
        (memcached, "oracle", 0.56, 0.60),
        (memcached, "scx", 0.25, 0.05),
        (nginx, "critical", 0.67, 0.57),
        (nginx, "oracle", 0.70, 0.65),
        (nginx, "scx", 0.50, 0.42),
        (redis, "critical", 0.49, 0.39),
        (redis, "oracle", 0.59, 0.51),
        (redis, "scx", 0.56, 0.63),
        (shared, "critical", 0.44, 0.43),
        (shared, "oracle", 0.36, 0.32),
        (shared, "scx", 0.23, 0.04),
    ):
        found = (cell.ratio(arm, "mean").ratio, cell.ratio(arm, "p99").ratio)
        assert found == pytest.approx((mean, p99), abs=0.005)


def test_what_is_said_of_single_vms_with_go_on_our_own_scheduler_is_so() -> None:
    (cell,) = (one for one in KEPT if one.file == "go-full")
    (plain,), (ours,) = cell.runs("none"), cell.runs("scx")
    ratios = [b.value("mean") / a.value("mean") for a, b in zip(plain.tenants, ours.tenants, strict=True)]
    assert sum(0.2 < one < 0.55 for one in ratios) == 6
    lost = [number for number, one in enumerate(ratios) if one > 1]
    worst = [ours.tenants[lost[0]].value(of) / plain.tenants[lost[0]].value(of) for of in ("mean", "p99")]
    assert worst == pytest.approx((1.84, 3.51), abs=0.005)
    for run, means, p99 in ((ours, (7.1e6, 4.7e6), (138e6, 102e6)), (plain, (3.9e6, 4.5e6), (39e6, 40e6))):
        of = [run.tenants[number] for number in lost]
        assert [one.value("mean") for one in of] == pytest.approx(means, rel=0.02)
        assert [one.value("p99") for one in of] == pytest.approx(p99, rel=0.02)


def test_what_is_said_of_redis_in_one_group_again_is_so() -> None:
    (again,) = cells(RESULTS / "again")
    for arm, mean, p99 in (
        ("critical", 0.39, 0.38),
        ("oracle", 0.39, 0.43),
        ("scx", 0.42, 0.57),
        ("none-again", 0.81, 0.86),
    ):
        found = (again.ratio(arm, "mean").ratio, again.ratio(arm, "p99").ratio)
        assert found == pytest.approx((mean, p99), abs=0.005)
        assert again.done(arm)[0] == pytest.approx(1, abs=0.02)
    assert again.done("oracle")[1] == pytest.approx(1.055, abs=0.0005)
    assert all(run.seconds > 2.3 for block in again.blocks for run in block.runs)
    (table_run,) = (cell for cell in KEPT if cell.file == "redis-shared")
    assert {round(run.seconds, 1) for block in table_run.blocks for run in block.runs} == {0.6, 0.8, 1.6, 1.7}


def test_what_is_said_of_the_earlier_run_of_redis_in_one_group_is_so() -> None:
    (cell,) = cells(RESULTS / "latencies")
    for arm, name, mean, p99 in (
        ("none-again", "plain again", "1.05 [0.85, 1.29]", "1.09 [0.79, 1.46]"),
        ("critical", "`critical`", "0.47 [0.35, 0.62]", "0.47 [0.33, 0.68]"),
        ("oracle", "oracle", "0.45 [0.35, 0.57]", "0.47 [0.33, 0.68]"),
        ("scx", "`dasec scx`", "1.23 [1.00, 1.55]", "0.56 [0.42, 0.73]"),
    ):
        assert [effect(cell.ratio(arm, metric)) for metric in ("mean", "p99")] == [mean, p99]
        assert f"| {name} | {mean} | {p99} |" in README
        requests, _ = cell.done(arm)
        assert requests == pytest.approx(1, abs=0.01)
        assert {sum(one.latencies.count for one in run.tenants) for run in cell.runs(arm)} == {5963}
    assert cell.runs("critical")[0].seconds < 1, "who measures looked too late"
    assert cell.done("critical")[1] < 0.5

"""The testbed without a guest: experiments' files, orders, and the judgement on a machine."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.places.counted.cpus import Cpus
from experiments.places.counted.kernels import PATCHED, kernel_for
from experiments.places.counted.validation import BALANCE, GAP, SPEED, WAKE, WINDOWS, Told, Validation, table
from experiments.plan.blocks import blocks_of
from experiments.plan.file import told_in
from experiments.plan.order import Order
from experiments.plan.testbed import Shapes
from experiments.plan.word import told_in as from_word
from experiments.run.guests import task_for
from experiments.run.planned import experiment_in
from experiments.studies.testbed.command import machine_for

HERE = Path(__file__).resolve().parents[3] / "experiments/studies/testbed"
FILES = sorted(HERE.glob("*.toml"))


WHOLE = b'policies = []\n[[workload]]\nname = "w"\nthreads = 4\nrates_per_s = [10]\n'


def read(file: Path, cpus: int, kernel: str) -> Shapes:
    """The file's experiment on this machine."""
    found = experiment_in(told_in(file, (f"cpus={cpus}", f"kernel={kernel}")), file)
    assert isinstance(found, Shapes)
    return found


def cpus_of(file: Path) -> tuple[int, ...]:
    """On which it can be run: a topology is of one number of CPUs."""
    topology = tomllib.loads(file.read_text(encoding="utf-8")).get("topology")
    return (math.prod(topology) - 1,) if topology else (8, 16, 80)


@pytest.mark.parametrize(
    ("file", "cpus"),
    [pytest.param(file, cpus, id=f"{file.name}, {cpus}") for file in FILES for cpus in cpus_of(file)],
)
def test_a_guest_is_told_its_block_in_a_word_that_fits(file: Path, cpus: int) -> None:
    experiment = read(file, cpus, PATCHED)
    for block in blocks_of(experiment.cells.possible, experiment.arms, 1, experiment.seed):
        told = Order.read(task_for(experiment, block).word)
        assert (told.experiment, told.block) == (dataclasses.replace(experiment, title=""), block)


@pytest.mark.parametrize("name", ["", "../elsewhere", "a/b", "Two words"])
def test_a_name_that_is_none_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "any.toml"
    file.write_bytes(WHOLE.replace(b'"w"', f'"{name}"'.encode()))
    with pytest.raises(Refusal, match=r"workload\[0\]\.name: String should match"):
        experiment_in(told_in(file, ("cpus=4", "ratios=[1]")), file)


def test_a_higher_ratio_is_more_workloads_that_each_ask_for_the_same() -> None:
    experiment = read(HERE / "ratio-sweep.toml", 16, PATCHED)
    scenarios = {cell.ratio: cell.scenario for cell in experiment.cells.possible}
    assert {ratio: len(scenario.tenants) for ratio, scenario in scenarios.items()} == {
        ratio: ratio for ratio in (1, 3, 6, 9)
    }
    assert all(tenant.vcpus == 16 for scenario in scenarios.values() for tenant in scenario.tenants)
    asked = {cell.ratio: cell.utilisation for cell in experiment.cells.possible}
    assert asked[9] == pytest.approx(9 * asked[1], rel=0.01)


def test_pinned_workloads_begin_at_cpus_that_are_evenly_apart(tmp_path: Path) -> None:
    file = tmp_path / "pinned.toml"
    file.write_text(
        "ratios = [4]\npolicies = []\n"
        '[[workload]]\nname = "a"\nthreads = 16\nrates_per_s = [9]\npinned = true\n'
    )
    (cell,) = read(file, 16, PATCHED).cells.possible
    options = [dict(tenant.options) for tenant in cell.scenario.tenants]
    assert [told["pin-from"] for told in options] == ["0", "4", "8", "12"]


def test_a_server_is_one_thread_that_another_process_asks_and_awaits_and_its_rate_may_step(
    tmp_path: Path,
) -> None:
    file = tmp_path / "step.toml"
    file.write_text(
        "ratios = [1]\npolicies = []\nseconds = 4\nwarmup_s = 3\n"
        '[[workload]]\nname = "a"\nkind = "server"\nthreads = 4\nbackground = 3\nrates_per_s = [100]\n'
        "step_to_per_s = 300\nanswers = true\n"
    )
    (cell,) = read(file, 4, "6.12").cells.possible
    (tenant,) = cell.scenario.tenants
    told = dict(tenant.options)
    assert (tenant.vcpus, tenant.critical, tenant.rate_per_s) == (4, ("main",), 100)
    assert (told["helpers"], told["step-rate"], told["step-at"]) == ("0", "300", "5")
    assert {"feeder", "answers"} <= told.keys()


def test_an_experiment_may_ask_for_other_turns_sockets_and_threads(tmp_path: Path) -> None:
    file = tmp_path / "sockets.toml"
    told = '[[workload]]\nname = "a"\nthreads = 2\nrates_per_s = [9]\n'
    file.write_text(f"ratios = [4]\npolicies = []\nturn_instructions = 1000\ntopology = [4, 2, 2]\n{told}")
    assert read(file, 15, PATCHED).machine == machine_for(15, 1000, "4,2,2")
    with pytest.raises(Refusal, match="16 CPUs, not 16 and one that measures"):
        read(file, 16, PATCHED)


SMALLEST = '[[workload]]\nname = "a"\nthreads = 2\nrates_per_s = [9]\n'


def test_clients_have_as_many_cpus_of_their_own_as_a_file_says(tmp_path: Path) -> None:
    file = tmp_path / "asking.toml"
    file.write_text(f"ratios = [4]\npolicies = []\nasking = 2\ntopology = [1, 19, 1]\n{SMALLEST}")
    machine = read(file, 16, PATCHED).machine
    assert (machine.services, machine.total, list(machine.clients)) == (16, 19, [17, 18])
    with pytest.raises(Refusal, match="make 19 CPUs, not 15 and one that measures, and 2 for clients"):
        read(file, 15, PATCHED)


def test_a_guest_without_cpus_for_clients_is_told_what_it_always_was(tmp_path: Path) -> None:
    words = []
    for told in ("", "asking = 0\n", "asking = 1\n"):
        file = tmp_path / "asking.toml"
        file.write_text(f"ratios = [4]\npolicies = []\n{told}{SMALLEST}")
        experiment = read(file, 16, PATCHED)
        (block, *_) = blocks_of(experiment.cells.possible, experiment.arms, 1, 1)
        words.append(task_for(experiment, block).word)
    assert words[0] == words[1] != words[2]
    assert b"asking" not in from_word(words[0])


def test_cpus_for_clients_are_of_guests(tmp_path: Path) -> None:
    file = tmp_path / "asking.toml"
    file.write_text(f'place = "host"\nratios = [4]\npolicies = []\nasking = 1\n{SMALLEST}')
    with pytest.raises(Refusal, match="asking is of guests: leave it out"):
        read(file, 16, PATCHED)


@pytest.mark.parametrize("kernel", [PATCHED, "6.12"])
def test_rla_has_the_range_of_the_kernels_own_scheduler(kernel: str) -> None:
    experiment = read(HERE / "ratio-sweep.toml", 16, kernel)
    (block, *_) = blocks_of(experiment.cells.possible, experiment.arms, 1, 1)
    settings = experiment.plan(block).settings.get("dasec", "")
    assert ("start_us = 4000\nceiling_us = 12000" in settings) == (kernel == PATCHED)


def test_an_experiment_that_says_too_much_for_a_guest_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    names = [hashlib.sha256(bytes([number])).hexdigest() for number in range(40)]
    workloads = [f'[[workload]]\nname = "{name}"\nthreads = 2\nrates_per_s = [9]\n' for name in names]
    file.write_text("ratios = [1]\npolicies = []\n" + "".join(workloads), encoding="utf-8")
    with pytest.raises(Refusal, match="this experiment and 2 arms are .*: make two files of it"):
        read(file, 8, PATCHED)


def test_all_that_is_wrong_in_a_file_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('ratios = [0]\npolicies = ["best"]\nspeed = 3\n[[workload]]\nname = "a"\nthreads = 1\n')
    with pytest.raises(Refusal) as refused:
        read(file, 8, PATCHED)
    assert refused.value.status is ExitStatus.USAGE
    said = "\n".join(refused.value.lines)
    for what in ("ratios[0]", "policies[0]", "speed", "workload[0].threads", "workload[0].rates_per_s"):
        assert what in said
    assert "Value error" not in said


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ('kind = "pipeline"', "pipeline needs background threads: give background"),
        (
            'kind = "convoy"\nbackground = 1\nhelper_us = 900',
            "helper_us and imbalance are of fan-out, not of convoy",
        ),
        ("answers = true", "answers are of a server, not of fan-out: leave them out"),
        ('kind = "server"\nbackground = 2', "2 threads of 4 serve: a server is one thread"),
        ("background = 3", "background = 3 leaves 1 of 4 threads to serve: fan-out needs 2"),
    ],
)
def test_a_workload_that_cannot_be_what_it_says_is_refused(tmp_path: Path, told: str, complaint: str) -> None:
    workload = f'[[workload]]\nname = "w"\nthreads = 4\nrates_per_s = [10]\n{told}\n'
    file = tmp_path / "wrong.toml"
    file.write_text(f"ratios = [1]\npolicies = []\n{workload}", encoding="utf-8")
    with pytest.raises(Refusal) as refused:
        read(file, 8, "6.1")
    (line,) = refused.value.lines
    assert complaint in line


def test_two_workloads_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.toml"
    workload = '[[workload]]\nname = "w"\nthreads = 4\nrates_per_s = [10]\n'
    file.write_text(f"ratios = [1]\npolicies = []\n{workload}{workload}pinned = true\n", encoding="utf-8")
    with pytest.raises(Refusal, match="w at 10/s: there twice"):
        read(file, 8, PATCHED)


@pytest.mark.parametrize("text", [None, b"ratios = [", b"ratios = [1]  # \xff", b"ratios = [inf]\n"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, text: bytes | None) -> None:
    file = tmp_path / "some.toml"
    if text is not None:
        file.write_bytes(text + (WHOLE if text.endswith(b"\n") else b""))
    with pytest.raises(Refusal) as refused:
        read(file, 8, PATCHED)
    assert len(refused.value.lines) == 1


def test_more_cpus_than_the_kernel_has_are_refused() -> None:
    with pytest.raises(Refusal, match="has at most 63"):
        kernel_for(PATCHED, Cpus(80, 500, 5000))
    with pytest.raises(Refusal, match="has at most 62"):
        kernel_for(PATCHED, Cpus(63, 500, 5000, asking=1))


def sound() -> Validation:
    """Four CPUs as they should be."""
    done = int(4 * 500e6 * 0.5 / 206 / 8)
    told = (
        *(Told(SPEED, part, (20_000_000,) * count) for part, count in (("first", 1), ("last", 1))),
        *(Told(SPEED, part, (20_000_000,) * count) for part, count in (("half", 2), ("all", 4))),
        Told(WAKE, "0 to 2, others idle", (4_000,) * 100),
        *(Told(GAP, what, (ns,) * 4) for what, ns in (("middle", 8_000), ("longest", 40_000))),
        *(Told(BALANCE, window, (done,) * 8) for window in WINDOWS),
    )
    return Validation(Cpus(4, 500, 5000), told, repeated=True, host_s=5.0)


def with_values(kind: str, what: str, values: tuple[int, ...]) -> Validation:
    """The same but for one line."""
    one = sound()
    told = tuple(
        dataclasses.replace(line, values=values) if (line.kind, line.what) == (kind, what) else line
        for line in one.told
    )
    return dataclasses.replace(one, told=told)


def test_a_sound_machine_has_no_failures() -> None:
    one = sound()
    assert one.failures == ()
    assert one.spread == 0
    assert [one.speed_up, *one.jains] == pytest.approx([4, 1, 1, 1, 1])
    row = (
        "| 4 | 0.00% | 4.00 | 4.0 / 4.0 | 8.0 / 40 | 1.00–1.00 | 1.000 1.000 1.000 1.000 | 1.000 | yes | 5 |"
    )
    assert row in table([one])


def test_what_is_unusual_about_a_machine_is_in_its_name() -> None:
    cpus = machine_for(15, 1000, "2,4,2")
    assert dataclasses.replace(sound(), cpus=cpus).name == "15, turns of 1000, sockets=2,cores=4,threads=2"


@pytest.mark.parametrize("topology", ["2,4", "2,4,x", "2,4,1"])
def test_a_topology_of_other_cpus_is_refused(topology: str) -> None:
    with pytest.raises(click.UsageError, match="--topology"):
        machine_for(15, 1000, topology)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: with_values(SPEED, "half", (20_000_000, 21_000_000)), "speeds differ"),
        (lambda: with_values(SPEED, "all", (30_000_000,) * 4), "as fast as 2.67"),
        (lambda: with_values(WAKE, "0 to 2, others idle", (90_000,) * 100), "a wake-up takes 90.0 us"),
        (lambda: with_values(GAP, "middle", (8_000, 8_000, 90_000, 8_000)), "stops for 90.0 us"),
        (lambda: with_values(BALANCE, WINDOWS[0], (3_000,) * 8), "of the CPUs"),
        (lambda: dataclasses.replace(sound(), repeated=False), "a second run said something else"),
    ],
)
def test_what_is_not_as_it_should_be_is_said(make: Callable[[], Validation], complaint: str) -> None:
    assert any(complaint in line for line in make().failures)


def test_experiments_are_the_same_for_the_same_seed() -> None:
    one, other = (read(HERE / "quick.toml", 8, PATCHED) for _ in range(2))
    assert isinstance(one, Shapes)
    assert one == other

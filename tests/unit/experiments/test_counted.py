"""The instruction-counted guest, without starting one: its CPUs, its command line, its archive's sources."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.config.config import check
from dasec.lab.kit.arms import CONTROL, NONE, ON_SCX, told_under
from dasec.lab.kit.controller import Managed, configuration
from experiments.places.counted.cpus import MIPS_OF_ALL, Cpus, mask_of
from experiments.places.counted.image import LOAD, REPOSITORY, Inside, build_id
from experiments.places.counted.inside import unhurried
from experiments.places.counted.kernels import configuration_of, release_of
from experiments.places.counted.machine import Machine, Task
from experiments.plan.file import told_in
from experiments.run.guests import INSIDE
from experiments.run.planned import blocks, experiment_in
from experiments.studies.sched_ext.neighbours import INSIDE as BESIDE
from guests.qemu import Qemu


@pytest.mark.parametrize("services", [1, 2, 4])
def test_services_have_the_first_cpus_and_equal_parts_of_the_speed(services: int) -> None:
    cpus = Cpus(services)
    assert (cpus.total, cpus.measuring) == (services + 1, services)
    assert cpus.mips_each * cpus.total == pytest.approx(MIPS_OF_ALL)


@pytest.mark.parametrize("services", [2, 15, 80])
def test_a_slower_clock_makes_any_number_of_cpus_as_fast_as_wanted(services: int) -> None:
    cpus = Cpus(services, mips_wanted=500, turn=5000)
    assert cpus.mips_each == 500
    assert cpus.per_us == 500 * cpus.total
    assert cpus.round_us == pytest.approx(10), "a turn of 5000 instructions at 500 MIPS"


def test_clients_share_the_cpu_that_measures_unless_they_have_some_of_their_own() -> None:
    assert list(Cpus(16).clients) == list(Cpus(16).apart) == [16]
    cpus = Cpus(16, mips_wanted=500, asking=2)
    assert (cpus.total, cpus.measuring, list(cpus.clients)) == (19, 16, [17, 18])
    assert cpus.mips_each == Cpus(16, mips_wanted=500).mips_each


def test_the_masks_of_services_daemon_and_clients_have_no_cpu_in_common() -> None:
    cpus = Cpus(4, asking=1)
    assert [mask_of(some) for some in (range(cpus.services), (cpus.measuring,), cpus.clients)] == [
        "f",
        "10",
        "20",
    ]


def command_on(cpus: Cpus) -> list[str]:
    """Of a guest."""
    machine = Machine(Qemu(Path("/qemu")), Path("/kernel"), Path("/archive"), Path("/turns.so"), cpus)
    return machine.command(Task("a guest", "abc=", 4))


def test_a_guest_counts_instructions_on_all_its_cpus_and_keeps_the_last_one_apart() -> None:
    command = command_on(Cpus(2))
    assert "LD_PRELOAD=/turns.so" in command[: command.index("/qemu")]
    options = dict(zip(command, command[1:], strict=False))
    assert (options["-smp"], options["-icount"]) == ("3", "shift=0,sleep=off")
    assert {"idle=poll", "isolcpus=2", "task=abc="} <= set(options["-append"].split())


def test_cpus_of_clients_are_apart_as_well() -> None:
    command = command_on(Cpus(2, asking=2))
    assert command[command.index("-smp") + 1] == "5"
    assert "isolcpus=2,3,4" in command[-1].split()


INSIDES = [INSIDE, BESIDE]


@pytest.mark.parametrize("inside", INSIDES, ids=lambda inside: str(inside.module))
def test_everything_that_runs_inside_is_there(inside: Inside) -> None:
    assert all(file.is_file() for file in inside.files)


@pytest.mark.parametrize("inside", INSIDES, ids=lambda inside: str(inside.module))
def test_what_runs_inside_brings_every_module_of_the_experiments_that_it_imports(inside: Inside) -> None:
    for file in inside.files:
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("from ."):
                module = line.split()[1]
                up = len(module) - len(module.lstrip("."))
                imported = file.parents[up - 1].joinpath(*module.strip(".").split(".")).with_suffix(".py")
                assert imported in inside.files, f"{file.name}: {line}"


def test_another_module_inside_is_another_build() -> None:
    assert build_id(INSIDE) != build_id(BESIDE)
    assert build_id(INSIDE) == build_id(Inside("experiments.run.inside"))


def test_in_a_guest_no_budget_delays_a_daemon() -> None:
    file = REPOSITORY / "experiments/studies/fig13/rules.toml"
    experiment = experiment_in(told_in(file), file)
    plan = unhurried(experiment.plan(blocks(experiment)[0]))
    assert plan.settings.keys() == set(plan.arms) - {NONE, CONTROL}
    for arm in plan.settings:
        told = configuration(arm, [Managed("any", 1024, (1,))], plan.settings[arm])
        assert check(tomllib.loads(told), arm).budget_percent == 100


def test_nor_one_on_our_scheduler() -> None:
    file = REPOSITORY / "experiments/studies/sched_ext/daemon.toml"
    experiment = experiment_in(told_in(file), file)
    plan = unhurried(experiment.plan(blocks(experiment)[0]))
    arms = [arm for arm in plan.arms if arm.startswith(ON_SCX)]
    for arm in arms:
        told = configuration(arm, [Managed("any", 1024, (1,))], told_under(arm, plan.settings, 1))
        settings = check(tomllib.loads(told), arm)
        assert (settings.budget_percent, settings.host.backend) == (100, "sched_ext")
    assert len(arms) == 2


def test_the_options_of_a_kernel_are_those_beside_its_image_under_the_release_that_it_says(
    tmp_path: Path,
) -> None:
    image = tmp_path / "bzImage"
    header = bytearray(0x210)
    header[0x20E:0x210] = (0x20).to_bytes(2, "little")
    image.write_bytes(header.ljust(0x220, b"\0") + b"6.12.117-scx (root@vm) #1 SMP\0")
    assert release_of(image) == "6.12.117-scx"
    assert configuration_of(image) is None
    for name in ("config-6.12.117-scx", "config"):
        (tmp_path / name).write_text("CONFIG_HZ=1000\n", encoding="utf-8")
        assert configuration_of(image) == tmp_path / name


def test_other_options_are_another_build(tmp_path: Path) -> None:
    file = tmp_path / "config"
    builds = set()
    for options in ("CONFIG_HZ=1000\n", "CONFIG_HZ=250\n"):
        file.write_text(options, encoding="utf-8")
        builds.add(build_id(replace(INSIDE, options=("6.12.117-scx", file))))
    assert len({build_id(INSIDE), *builds}) == 3


def test_whoever_asks_has_a_cpu_of_its_own_and_goes_first_there() -> None:
    """All clients of the load tool do: whoever is asked has the other CPUs."""
    source = (REPOSITORY / "experiments/load/src/main.c").read_text(encoding="utf-8")
    clients = set(re.findall(r'{"(\w+)", "an open-loop ', source))
    assert "memcached" in clients
    (seated,) = re.findall(r"case \$1 in (.*)\) seat=/run/client-cpus", LOAD)
    assert set(seated.split(" | ")) == clients

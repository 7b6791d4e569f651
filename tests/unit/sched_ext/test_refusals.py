"""Where our sched_ext scheduler is not loaded, and why, in one line."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import click
import pytest

from dasec.bpf.libbpf import BpfObject, BpfUnavailable
from dasec.bpf.scx import (
    MAX_CPUS,
    MAX_VMS,
    REST,
    groups,
    limits,
    no_vms,
    options,
    refuse_what_it_cannot_keep,
    why_not_tried,
)
from dasec.commands import scx
from dasec.commands.cli import commands
from dasec.commands.survey import render
from dasec.errors import ExitStatus, Refusal
from dasec.hosts.host import DEEPEST_VM_LEVEL
from dasec.model import Capabilities
from dasec.service.run import Order

WATCHDOG_NS = 5_000_000_000
SOURCE = Path(__file__).parents[3] / "daemon/bpf/scx_state.h"


class Host:
    """Files of a host on which it can be loaded."""

    def __init__(self, folder: Path) -> None:
        self.sysfs, self.cgroups, self.isolated = folder / "sched_ext", folder / "cgroup", folder / "isolated"
        self.write(self.sysfs / "state", "disabled\n")
        self.write(self.cgroups / "cgroup.controllers", "cpu\n")
        self.write(self.cgroups / "machine.slice/a.scope/cpu.max", "max 100000\n")
        self.write(self.isolated, "\n")

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def refusal(self) -> str:
        with pytest.raises(BpfUnavailable) as caught:
            refuse_what_it_cannot_keep(self.sysfs, self.cgroups, self.isolated)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_host_that_has_it_free_is_not_refused(host: Host) -> None:
    refuse_what_it_cannot_keep(host.sysfs, host.cgroups, host.isolated)


def test_a_kernel_without_sched_ext(host: Host, tmp_path: Path) -> None:
    host.sysfs = tmp_path / "none"
    assert host.refusal().startswith(
        "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, Linux 6.12 or later;"
    )


@pytest.mark.parametrize("state", ["enabled", "enabling", "disabling"])
def test_another_scheduler_is_named(host: Host, state: str) -> None:
    host.write(host.sysfs / "state", f"{state}\n")
    host.write(host.sysfs / "root/ops", "bpfland_1.1.4\n")
    assert host.refusal() == f"the sched_ext scheduler bpfland_1.1.4 is {state} already: stop it first"


def test_whoever_asks_for_it_for_some_workloads_is_told_nothing_of_other_backends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has chosen it, so a setting of the file would mend nothing."""
    file, why = tmp_path / "dasec.toml", "the sched_ext scheduler bpfland is enabled already: stop it first"
    file.write_text('[[workload]]\nname = "a"\npids = [1]\n')
    monkeypatch.setattr(scx, "why_not", lambda: why)
    with pytest.raises(Refusal) as refused:
        scx.schedule_workloads(file, 2, tmp_path)
    assert (refused.value.status, refused.value.lines) == (ExitStatus.HOST, (f"scx: {why}",))


def test_isolated_cpus(host: Host) -> None:
    host.write(host.isolated, "3-5\n")
    assert host.refusal().startswith("CPUs 3-5 are isolated (isolcpus=)")


def test_cgroup_v1(host: Host) -> None:
    (host.cgroups / "cgroup.controllers").unlink()
    assert host.refusal().endswith("is not cgroup v2, whose groups are the VMs")


def test_a_container_that_does_not_see_the_groups_of_others(host: Host) -> None:
    """One of them may have a CPU limit."""
    host.write(host.cgroups / "cgroup.type", "domain\n")
    assert "CPU limits of the others would not be kept" in host.refusal()


def test_a_group_with_a_cpu_limit_is_named(host: Host) -> None:
    host.write(host.cgroups / "machine.slice/b.scope/cpu.max", "50000 100000\n")
    assert "machine.slice/b.scope has a CPU limit (50000 100000)" in host.refusal()


def test_all_limits_are_told_in_words(host: Host) -> None:
    host.write(host.cgroups / "b.scope/cpu.max", "50000 100000\n")
    host.write(host.cgroups / "machine.slice/c.scope/cpu.max", "1000 100000\n")
    found = [limit.removeprefix(f"{host.cgroups}/") for limit in limits(host.cgroups)]
    assert found == [
        "b.scope has a CPU limit (50000 100000)",
        "machine.slice/c.scope has a CPU limit (1000 100000)",
    ]


def test_a_group_that_is_removed_while_all_are_looked_at_is_left_out(host: Host) -> None:
    host.write(host.cgroups / "b.scope/cpu.max", "50000 100000\n")
    host.write(host.cgroups / "machine.slice/c.scope/cpu.max", "1000 100000\n")
    walk = limits(host.cgroups)
    assert next(walk) == f"{host.cgroups}/b.scope has a CPU limit (50000 100000)"
    shutil.rmtree(host.cgroups / "machine.slice")
    assert [*walk] == []


def test_groups_with_none_below_them_are_not_listed(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has dozens of files, and to list those of all cost four times as much as to look at limits."""
    if os.stat(host.cgroups).st_nlink < 2:
        pytest.skip("this file system does not count links, as that of groups does")
    listed: list[str] = []
    scandir = os.scandir

    def told(directory: str) -> object:
        listed.append(directory)
        return scandir(directory)

    monkeypatch.setattr(os, "scandir", told)
    assert groups(host.cgroups) == ("/", "/machine.slice", "/machine.slice/a.scope")
    assert listed == [str(host.cgroups), f"{host.cgroups}/machine.slice"]


def test_groups_in_use_without_the_cpu_controller_are_counted_and_one_is_named(host: Host) -> None:
    assert no_vms(2, host.cgroups) is None
    for name, populated in (("a", 1), ("b", 1), ("idle", 0)):
        host.write(host.cgroups / f"system.slice/{name}.service/cgroup.events", f"populated {populated}\n")
    host.write(host.cgroups / "machine.slice/a.scope/cgroup.events", "populated 1\n")
    host.write(host.cgroups / "machine.slice/a.scope/cpu.weight", "100\n")
    assert no_vms(2, host.cgroups) == (
        "system.slice/a.service, one of 2 such groups at depth 2, is no VM but shares as one with all"
        f" others of system.slice: no cpu in {host.cgroups}/system.slice/cgroup.subtree_control"
    )
    assert no_vms(1, host.cgroups) is None


def test_the_probe_says_why_not_beside_everything_else() -> None:
    everything = Capabilities("mainline", True, "", True, "", True, "", True, "", warnings=("the last line",))
    lines = render(everything, "another one is loaded").splitlines()
    assert lines[-2] == "own scheduler         no   another one is loaded"
    assert render(everything, None).splitlines()[-2].startswith("own scheduler         yes  `dasec scx`")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """What the daemon is told on a host that takes our scheduler."""
    given: list[Order] = []
    monkeypatch.setattr(scx, "why_not", lambda: None)
    monkeypatch.setattr("dasec.service.run.serve", given.append)
    return given


def test_the_command_reads_its_file_at_a_reload_as_at_its_start(tmp_path: Path, served: list[Order]) -> None:
    file = tmp_path / "dasec.toml"
    file.write_text('policy = "critical"\n[[workload]]\nname = "a"\npids = [1]\n')
    scx.schedule_workloads(file, 3, tmp_path)
    (order,) = served
    assert order.read(file) == order.config
    host = order.config.host
    assert (order.config.policy, host.backend, host.vm_level, host.partial) == ("none", "sched_ext", 3, True)


@pytest.mark.parametrize(("chosen", "level"), [(None, 4), (2, 2)])
def test_vms_are_at_the_depth_that_the_file_says_unless_the_command_says_another(
    tmp_path: Path, served: list[Order], chosen: int | None, level: int
) -> None:
    file = tmp_path / "dasec.toml"
    file.write_text('[host]\nbackend = "sched_ext"\nvm_level = 4\n[[workload]]\nname = "a"\npids = [1]\n')
    told = ["--level", str(chosen)] if chosen else []
    command = ["scx", "--partial", str(file), "--directory", str(tmp_path), *told]
    commands.main(command, standalone_mode=False)
    assert [order.config.host.vm_level for order in served] == [level]


def test_the_command_takes_no_deeper_level_than_a_configuration() -> None:
    with pytest.raises(click.BadParameter, match=f"1<=x<={DEEPEST_VM_LEVEL}"):
        commands.main(["scx", "--level", str(DEEPEST_VM_LEVEL + 1)], standalone_mode=False)


def test_what_the_kernel_does_not_take_is_told_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> BpfObject:
        raise BpfUnavailable("the kernel refuses the BPF object scx_dasec: Permission denied")

    monkeypatch.setattr("dasec.bpf.scx.why_not", lambda: None)
    monkeypatch.setattr("dasec.bpf.scx.load", refused)
    assert why_not_tried(2) == "the kernel refuses the BPF object scx_dasec: Permission denied"


def test_nothing_is_tried_where_it_must_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dasec.bpf.scx.why_not", lambda: "another one is loaded")
    monkeypatch.setattr("dasec.bpf.scx.load", lambda *_, **__: pytest.fail("it was loaded"))
    assert why_not_tried(2) == "another one is loaded"


def test_both_sides_have_the_same_limits() -> None:
    source = SOURCE.read_text()
    for name, value in (("MAX_CPUS", MAX_CPUS), ("MAX_VMS", MAX_VMS), ("REST", REST)):
        assert re.findall(rf"^#define {name} (\d+)\b", source, re.MULTILINE) == [str(value)]


def test_each_bound_leaves_room_for_the_one_before_it() -> None:
    """A debt of many slices, a turn after all that are overdue, and the watchdog after all of them."""
    chosen = options(2)
    assert chosen.critical_slice_ns < chosen.slice_ns < chosen.debt_ns < chosen.overdue_ns
    assert chosen.overdue_ns < chosen.turn_ns < chosen.touch_ns < WATCHDOG_NS


def test_the_watchdog_is_that_of_the_source() -> None:
    operations = (SOURCE.parent / "scx_dasec.bpf.c").read_text()
    assert re.findall(r"\.timeout_ms = (\d+)\b", operations) == [str(WATCHDOG_NS // 1_000_000)]

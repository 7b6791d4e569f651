"""The daemon's host whose scheduler is ours: what words do, and what is left when it ends in whatever way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.bpf import libbpf
from dasec.errors import ExitStatus
from dasec.hosts.host import HostSettings
from dasec.hosts.sched_ext import SchedExt
from dasec.linux import extwords
from dasec.linux.sched_ext import state
from dasec.model import Capabilities, Change, Core, Knob, KnobValue, Outcome, VcpuId
from dasec.safety.fingerprint import differences, fingerprint
from dasec.safety.journal.journal import Journal
from guests.waiting import wait_for as wait_until
from tests.contract.stage import probed_with_scheduler, roster

from ..host.running import burner
from ..unit.service.command import configuration, dasec
from .machine import HOG, NEEDS_SCHED_EXT, SOON_S, Vm, computed_s, identity, in_the_end, wait_for
from .others_words import has_word

pytestmark = NEEDS_SCHED_EXT

SETTINGS = 'period_ms = 200\npolicy = "dasec"\nbudget_percent = 100\n[host]\nbackend = "sched_ext"\n'
SERVICE = Path(__file__).parents[2] / "packaging/systemd/dasec.service"
MEANWHILE_S = 3.0
CRITICAL_NS, NOT_CRITICAL_NS = 1_000_000, 33_000_000


@dataclass
class Managed:
    """A host with the programs of one VM as a workload."""

    host: SchedExt
    vcpus: Sequence[VcpuId]

    def set(self, vcpu: VcpuId, knob: Knob, value: KnobValue) -> None:
        self.look()
        (result,) = self.host.apply([Change(vcpu, knob, value, value, "test")])
        assert result.outcome is Outcome.APPLIED, result

    def look(self) -> None:
        self.host.observe(roster(self.vcpus))

    def sees(self, wanted: str) -> bool:
        """Whether the kernel's state is that after one more look."""
        self.look()
        return state() == wanted

    def used_s(self, *, attended: bool = True) -> list[float]:
        """The CPU time of each in some seconds."""
        before = [computed_s(vcpu.pid) for vcpu in self.vcpus]
        ends = time.monotonic() + MEANWHILE_S
        while time.monotonic() < ends:
            if attended:
                self.look()
            time.sleep(0.1)
        return [computed_s(vcpu.pid) - then for vcpu, then in zip(self.vcpus, before, strict=True)]


@pytest.fixture
def capabilities() -> Capabilities:
    found = probed_with_scheduler()
    assert found.backend == "sched_ext"
    return found


@pytest.fixture
def pair(vms: dict[str, Vm], tmp_path: Path, capabilities: Capabilities) -> Iterator[Managed]:
    """Two hogs of one VM on one CPU."""
    journal, _ = Journal.open(tmp_path / "journal")
    host = SchedExt(journal, capabilities, HostSettings())
    vms["pair"] = Vm("pair")
    for _ in range(2):
        vms["pair"].run(HOG, {1})
    yield Managed(host, [identity(one.pid) for one in vms["pair"].programs])
    host.close()
    journal.close()
    wait_for("disabled")


def they_share(pair: Managed, fits: Callable[[float, float], bool], *, attended: bool = True) -> None:
    """At one of some looks."""
    in_the_end(lambda: pair.used_s(attended=attended), lambda used: fits(*used))


def test_a_vm_shares_among_its_threads_by_the_weights_that_the_daemon_gives_them(pair: Managed) -> None:
    pair.set(pair.vcpus[0], Knob.WEIGHT, 4096)
    they_share(pair, lambda heavy, light: heavy > 1.5 * light)


def test_who_the_daemon_calls_critical_goes_first_for_as_long_as_the_bucket_lets_it(pair: Managed) -> None:
    for vcpu, latency_ns in zip(pair.vcpus, (CRITICAL_NS, NOT_CRITICAL_NS), strict=True):
        pair.set(vcpu, Knob.RESCHEDULING_LATENCY, latency_ns)
    they_share(pair, lambda critical, other: critical > 1.15 * other)


def test_no_word_takes_time_from_another_vm(pair: Managed, vms: dict[str, Vm]) -> None:
    vms["other"] = Vm("other")
    vms["other"].run(HOG, {1})
    for vcpu in pair.vcpus:
        pair.set(vcpu, Knob.RESCHEDULING_LATENCY, CRITICAL_NS)
        pair.set(vcpu, Knob.WEIGHT, 4096)
    time.sleep(1)
    before = {name: vm.used_s() for name, vm in vms.items()}
    pair.used_s()
    used = {name: vm.used_s() - before[name] for name, vm in vms.items()}
    assert used["other"] / sum(used.values()) == pytest.approx(0.5, abs=0.1)


def test_words_of_a_daemon_that_hangs_do_not_count_for_long(pair: Managed) -> None:
    pair.set(pair.vcpus[0], Knob.WEIGHT, 4096)
    time.sleep(3)
    they_share(pair, lambda heavy, light: 0.8 < heavy / light < 1.25, attended=False)


def test_a_cpu_that_goes_and_comes_leaves_every_word_as_it_was(pair: Managed) -> None:
    pair.set(pair.vcpus[0], Knob.WEIGHT, 2048)
    for word in ("0", "1"):
        Path("/sys/devices/system/cpu/cpu1/online").write_text(word)
        pair.look()
        assert state() == "enabled"
        assert extwords.read(pair.vcpus[0].tid, extwords.WEIGHT) == 2048
    assert not pair.host.notices()


def test_a_scheduler_that_was_put_out_leaves_nothing_behind_and_says_so(pair: Managed) -> None:
    mask = os.sched_getaffinity(pair.vcpus[1].tid)
    pair.set(pair.vcpus[0], Knob.WEIGHT, 2048)
    pair.set(pair.vcpus[1], Knob.AFFINITY, frozenset({Core(1)}))
    Path("/proc/sysrq-trigger").write_text("S")
    wait_for("disabled")
    knobs = pair.host.observe(roster(pair.vcpus)).knobs
    assert [(one.weight, one.rescheduling_latency_ns) for one in knobs.values()] == [(None, None)] * 2
    assert os.sched_getaffinity(pair.vcpus[1].tid) == mask
    assert any("was put out" in line for line in pair.host.notices())
    left = pair.host.capabilities
    assert (left.weight, left.rescheduling_latency) == (False, False)
    assert "was put out" in left.weight_note
    assert pair.host.restore().failed == ()


def test_a_limit_that_somebody_sets_is_the_end_of_the_scheduler_and_is_kept(
    pair: Managed, vms: dict[str, Vm]
) -> None:
    mask = os.sched_getaffinity(pair.vcpus[1].tid)
    pair.set(pair.vcpus[0], Knob.WEIGHT, 2048)
    pair.set(pair.vcpus[1], Knob.AFFINITY, frozenset({Core(1)}))
    (vms["pair"].path / "cpu.max").write_text("20000 100000")
    wait_until(lambda: pair.sees("disabled"), patience_s=SOON_S, every_s=1.6)  # as seldom as it may look
    knobs = pair.host.observe(roster(pair.vcpus)).knobs
    assert [(one.weight, one.rescheduling_latency_ns) for one in knobs.values()] == [(None, None)] * 2
    assert os.sched_getaffinity(pair.vcpus[1].tid) == mask
    (line,) = [line for line in pair.host.notices() if "was put out" in line]
    assert "has a CPU limit (20000 100000), which only the kernel's own keeps" in line
    assert pair.host.restore().failed == ()
    they_share(pair, lambda one, other: one + other < 0.5 * MEANWHILE_S)


def test_a_dry_run_loads_no_scheduler(vms: dict[str, Vm], tmp_path: Path, capabilities: Capabilities) -> None:
    journal, _ = Journal.open(tmp_path / "journal")
    host = SchedExt(journal, capabilities, HostSettings(dry_run=True))
    assert state() == "disabled"
    host.close()
    journal.close()


@pytest.fixture
def busy() -> Iterator[int]:
    """A process whose threads work in short bursts, and one of them more than the others."""
    with burner(6) as process:
        yield process.pid


def rights_of_the_service(*more: str) -> str:
    """As setpriv(1) takes them."""
    (kept,) = re.findall(r"^CapabilityBoundingSet=(.*)$", SERVICE.read_text(encoding="utf-8"), re.MULTILINE)
    return ",".join(f"+{right.removeprefix('CAP_').lower()}" for right in (*kept.split(), *more))


def service(words: list[str], rights: str) -> list[str]:
    """A command of ours with no other rights than these."""
    program = [sys.executable, "-m", "dasec", *words]
    return ["setpriv", "--no-new-privs", f"--bounding-set=-all,{rights}", *program]


def is_old() -> bool:
    """Whether libbpf needs to look at the kernel's modules, which takes CAP_SYS_ADMIN."""
    return libbpf.version() < (1, 4)


def test_an_old_libbpf_needs_a_right_that_the_service_has_not_and_is_refused_in_one_line(
    busy: int, tmp_path: Path
) -> None:
    if not is_old():
        pytest.skip("this libbpf needs no more than the service has")
    config = configuration(tmp_path, SETTINGS, f"pids = [{busy}]")
    run = ["run", "--config", str(config), "--directory", str(tmp_path / "state")]
    done = subprocess.run(service(run, rights_of_the_service()), capture_output=True, text=True, check=False)
    assert done.returncode == ExitStatus.HOST
    assert "(without CAP_SYS_ADMIN it takes libbpf 1.4; this is 1." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert state() == "disabled"


@contextmanager
def daemon_that_has_spoken(busy: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`dasec run` on this process, with the rights of the service and what libbpf needs to load it, from
    when it has said something of one of its threads."""
    config, directory = configuration(folder, SETTINGS, f"pids = [{busy}]"), folder / "state"
    run = ["run", "--config", str(config), "--directory", str(directory)]
    command = service(run, rights_of_the_service(*["CAP_SYS_ADMIN"] * is_old()))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as daemon:
        wait_until(lambda: has_word(busy))
        assert state() == "enabled"
        yield daemon
    wait_for("disabled")


def test_the_daemon_takes_it_when_asked_and_gives_the_kernel_its_own_back(busy: int, tmp_path: Path) -> None:
    before = fingerprint([busy])
    with daemon_that_has_spoken(busy, tmp_path) as daemon:
        told = json.loads(dasec("status", "--json", "--directory", tmp_path / "state").out)
        assert "our sched_ext scheduler" in json.dumps(told)
        daemon.terminate()
        assert daemon.wait() == 0
    assert not has_word(busy)
    assert differences(before, fingerprint([busy])) == ()


def test_a_daemon_that_is_killed_leaves_the_kernels_own_and_every_knob_as_it_was(
    busy: int, tmp_path: Path
) -> None:
    before = fingerprint([busy])
    with daemon_that_has_spoken(busy, tmp_path) as daemon:
        daemon.kill()
    wait_until(lambda: not differences(before, fingerprint([busy])))
    assert dasec("restore", "--directory", tmp_path / "state").status == ExitStatus.DONE
    assert not has_word(busy)

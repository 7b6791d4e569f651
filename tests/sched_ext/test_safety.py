"""Whatever happens to our scheduler: the kernel's own is back, and every knob is as before."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from dasec.bpf.libbpf import BpfUnavailable, load
from dasec.bpf.scx import Scheduler, options
from dasec.errors import ExitStatus
from dasec.hosts.sched_ext.rcu import FIRST, rcu_first
from dasec.knobs.realtime import ORDINARY
from dasec.linux.sched_ext import state
from dasec.safety.fingerprint import differences, fingerprint
from dasec.safety.journal.journal import Journal
from guests.waiting import wait_for as wait_until
from tests.host.running import Running, burner
from tests.kin import children

from ..unit.service.command import configuration, dasec
from .machine import (
    HOG,
    NEEDS_SCHED_EXT,
    SHARES_S,
    Vm,
    in_the_end,
    priorities_of_rcu,
    used_meanwhile,
    wait_for,
)

pytestmark = NEEDS_SCHED_EXT

OTHERS = Path(__file__).resolve().parents[1] / "host/bpf"
SETTINGS = 'period_ms = 200\npolicy = "dasec"\nbudget_percent = 100\n[host]\nbackend = "sched_ext"\n'
HOUR_NS = 3600 * 10**9
WATCHDOG_S = 5
"""timeout_ms of scx_dasec.bpf.c. It looks every half of that."""

REAL_TIME = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True:
    for cpu in (0, 1):
        os.sched_setaffinity(0, {cpu})
        ends = time.monotonic() + 0.3
        while time.monotonic() < ends: pass
"""
"""Takes one CPU after the other."""


def test_who_loses_a_cpu_to_a_real_time_thread_goes_on_on_another(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    """By itself it would wait for that one, and have half of the time at most."""
    for name, program in (("hog", HOG), ("above", REAL_TIME)):
        vms[name] = Vm(name)
        vms[name].run(program)
    in_the_end(lambda: used_meanwhile(vms)["hog"], lambda used_s: used_s > 0.8 * SHARES_S)


def test_an_error_in_it_is_its_end_and_is_named(vms: dict[str, Vm]) -> None:
    vms["hog"] = Vm("hog")
    vms["hog"].run(HOG, {1}, times=2)  # one alone would never wait
    told = options(2)
    told.cpus = 1  # so that the second CPU has no queues
    with Scheduler(told) as scheduler:
        wait_for("disabled")
        assert "DSQ" in (scheduler.ended() or "")
    assert used_meanwhile(vms)["hog"] > 1


def test_a_thread_that_it_lets_wait_is_its_end_after_five_seconds(vms: dict[str, Vm]) -> None:
    """Kernel threads that come between are no turn for the other: one has given it its share for an hour."""
    for name, weight in (("one", 10000), ("other", 1)):
        vms[name] = Vm(name)
        vms[name].run(HOG, {1})
        vms[name].weigh(weight)  # then: with the weight 1 beside the other it takes half a minute to begin
    told = options(2)
    told.slice_ns = told.overdue_ns = told.turn_ns = told.touch_ns = HOUR_NS
    with Scheduler(told) as scheduler:
        began = time.monotonic()
        wait_for("disabled", 4 * WATCHDOG_S)
        assert time.monotonic() - began > WATCHDOG_S / 2
        assert "stall" in (scheduler.ended() or "")
    for vm in vms.values():
        vm.weigh(100)
    used = used_meanwhile(vms)
    assert min(used.values()) > 0.25 * sum(used.values())


MANY = "any(os.fork() == 0 for _ in range(60))\n" + HOG
"""Who makes them has a sixtieth of its VM's half: it takes longer than the test waits."""


def test_its_end_comes_also_while_a_process_still_makes_sixty_that_compute(
    vms: dict[str, Vm], tmp_path: Path
) -> None:
    """With RCU's thread as it was the guest stood still, nine of nine times (decision 0081)."""
    journal, _ = Journal.open(tmp_path)
    with rcu_first(journal), Scheduler(options(2)):
        vms["few"], vms["many"] = Vm("few"), Vm("many")
        vms["few"].run(HOG, times=2)
        vms["many"].run(MANY)
        used_meanwhile(vms)
        assert len((vms["many"].path / "cgroup.procs").read_text().split()) <= 60
    wait_for("disabled")
    assert journal.outstanding() == ()
    journal.close()


def test_beside_somebody_elses_scheduler_it_is_refused_by_that_ones_name(tmp_path: Path) -> None:
    other = load("other_scheduler", sizes={}, operations="other_ops", folder=OTHERS)
    try:
        other.attach_operations("other_ops")
        wait_for("enabled")
        with pytest.raises(BpfUnavailable, match="the sched_ext scheduler somebody_elses is enabled already"):
            Scheduler(options(2))
        config = configuration(tmp_path, SETTINGS)
        for command in (("scx",), ("scx", "--partial", config), ("run", "--config", config)):
            where = () if command == ("scx",) else ("--directory", tmp_path / "state")
            refused = dasec(*command, *where)
            assert refused.status == ExitStatus.HOST
            assert (
                "the sched_ext scheduler somebody_elses is enabled already: stop it first"
                in refused.errors[-1]
            )
        assert refused.errors[-1].endswith(', or set it to "auto"')
        assert state() == "enabled"
    finally:
        other.close()
    wait_for("disabled")


def test_the_daemon_and_its_keeper_killed_leave_nothing_that_restore_does_not_put_back(
    tmp_path: Path,
) -> None:
    with burner() as busy:
        before = fingerprint([busy.pid])
        config = configuration(tmp_path, SETTINGS, f"pids = [{busy.pid}]")
        with Running(tmp_path, config) as daemon:
            daemon.wait_for_work()
            for pid in (*children(daemon.pid), daemon.pid):
                os.kill(pid, signal.SIGKILL)
            wait_for("disabled")
            assert priorities_of_rcu() == {FIRST}
        assert dasec("restore", "--directory", tmp_path / "state").status == ExitStatus.DONE
        assert differences(before, fingerprint([busy.pid])) == ()
        assert priorities_of_rcu() == {ORDINARY}


def test_a_new_daemon_waits_for_the_old_one_and_takes_over_after_it(tmp_path: Path) -> None:
    """An upgrade: the new daemon is started while the old one runs, and once more when that has gone."""
    with burner() as busy:
        before = fingerprint([busy.pid])
        config = configuration(tmp_path, SETTINGS, f"pids = [{busy.pid}]")
        with Running(tmp_path, config) as old:
            old.wait_for_work()
            refused = dasec("run", "--config", config, "--directory", tmp_path / "state")
            assert refused.status == ExitStatus.HOST
            assert len(refused.errors) == 1
            os.kill(old.pid, signal.SIGKILL)
            wait_for("disabled")
        (tmp_path / "state/status.json").unlink()  # what is there from now on is the new one's
        with Running(tmp_path, config) as new:
            new.wait_for_work()
            assert state() == "enabled"
            new.stop()
        wait_for("disabled")
        wait_until(lambda: not differences(before, fingerprint([busy.pid])))


def test_a_reload_leaves_the_scheduler_and_what_it_was_told(tmp_path: Path) -> None:
    with burner() as busy:
        config = configuration(tmp_path, SETTINGS, f"pids = [{busy.pid}]")
        with Running(tmp_path, config) as daemon:
            daemon.wait_for_work()
            held = daemon.status()["knobs_held"]["rescheduling_latency"]
            answer = dasec("reload", "--directory", tmp_path / "state")
            assert answer.status == ExitStatus.DONE
            assert state() == "enabled"
            assert daemon.status()["knobs_held"]["rescheduling_latency"] >= held / 2
            configuration(tmp_path, SETTINGS.replace('"sched_ext"', '"auto"'), f"pids = [{busy.pid}]")
            refused = dasec("reload", "--directory", tmp_path / "state")
            assert refused.status != ExitStatus.DONE
            assert state() == "enabled"
            daemon.stop()
        wait_for("disabled")

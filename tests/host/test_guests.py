"""Three guests with services in them, and the real daemon, which finds them through libvirt.

TCG, so nothing here is about time. Two guests answer nobody outside; the third has a memcached that a client
on this host asks.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.exits import ExitStatus
from dasec.load import find_tool
from dasec.model import Outcome
from dasec.safety.fingerprint import Fingerprint, differences, fingerprint
from tests.conftest import refuse
from tests.vm.built import HostCannotError, guest_image
from tests.waiting import PATIENCE_S, wait_for

from ..unit.service.command import dasec
from .guests import VCPUS, Guest, guest
from .libvirtd import Libvirtd

pytestmark = [pytest.mark.host, pytest.mark.vm, pytest.mark.libvirt, pytest.mark.libvirtd]

SERVICE = (
    "dasec-load service --seconds 3600 --rate 40 --ready /dev/null"
    " --background 2 --background-burst-us 10000 --background-rate 40"
)
MEMCACHED_PORT = 11211
MEMCACHED = "memcached -u root -t 2"
CLIENT = ("--keys", "50", "--rate", "50", "--seconds", "2", "--warmup", "0", "--drain-seconds", "60")
CONFIGURATION = """
policy = "dasec"
[[workload]]
name = "vms"
libvirt = "dasec-*"
"""
TSA, RLA = ("weight", "slice_ns")


@dataclass(frozen=True, slots=True)
class Fleet:
    """The guests, all up."""

    libvirtd: Libvirtd
    guests: tuple[Guest, ...]

    def look(self) -> Fingerprint:
        """The knobs of every thread of every QEMU that runs, and the weights of libvirt's groups."""
        pids = [one.pid(self.libvirtd) for one in self.guests if one.name in self.running()]
        seen = fingerprint(pids)
        groups = {path: weight for path, weight in seen.groups.items() if "/machine/" in path}
        return Fingerprint(seen.threads, groups)

    def running(self) -> set[str]:
        """By libvirt's own files."""
        return {path.stem for path in self.libvirtd.directory.glob("dasec-*.xml")}

    def changed(self, before: Fingerprint) -> set[str]:
        """Which kinds of knob are not as before."""
        return {line.split(": ")[1].split()[0] for line in differences(before, self.look())}


@dataclass(frozen=True, slots=True)
class Daemon:
    """`dasec run`, in the namespace of libvirtd."""

    process: subprocess.Popen[bytes]
    state: Path
    record: Path

    def workloads(self) -> dict[str, int]:
        """How many vCPUs it manages of whom."""
        shown = json.loads((self.state / "status.json").read_text())
        return {one["name"].removeprefix("vms/"): one["vcpus"] for one in shown["workloads"]}

    def manages(self, names: set[str]) -> bool:
        """These, all of their vCPUs, and nobody else?"""
        return self.workloads() == dict.fromkeys(names, VCPUS)


@pytest.fixture(scope="module")
def image() -> Path:
    try:
        return guest_image("small")
    except HostCannotError as cannot:
        refuse(str(cannot))
        raise


@pytest.fixture(scope="module")
def fleet(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    import libvirt

    folder = tmp_path_factory.mktemp("guests")
    libvirtd = Libvirtd(folder / "log")
    try:
        guests = (
            guest(folder, "fanout", SERVICE),
            guest(folder, "pipeline", f"{SERVICE} --variant pipeline --stages 3"),
            guest(folder, "memcached", MEMCACHED, MEMCACHED_PORT),
        )
        connection = libvirt.open(libvirtd.uri)
        for one in guests:
            one.start(connection, image)
        for one in guests:
            one.wait_until_up()
        connection.close()
        yield Fleet(libvirtd, guests)
    finally:
        libvirtd.close()


@contextmanager
def daemon(fleet: Fleet, folder: Path) -> Iterator[Daemon]:
    """Runs until the block ends; then it has to have put everything back."""
    config, state, record = folder / "dasec.toml", folder / "state", folder / "record.jsonl"
    config.write_text(CONFIGURATION)
    options = ("--config", config, "--directory", state, "--record", record)
    inside = fleet.libvirtd.inside(sys.executable, "-m", "dasec", "run", *options)
    with subprocess.Popen(inside, cwd="/") as process:
        try:
            wait_for(lambda: (state / "status.json").exists() or process.poll() is not None)
            yield Daemon(process, state, record)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == ExitStatus.DONE
        finally:
            if process.poll() is None:
                process.kill()
    assert dasec("verify", "--directory", state).status == ExitStatus.DONE
    assert dasec("replay", record).status == ExitStatus.DONE


def ask(memcached: Guest) -> dict[str, object]:
    """A client on this host."""
    command = [str(find_tool()), "memcached", "--port", str(memcached.ports[MEMCACHED_PORT]), *CLIENT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def of_record(record: Path) -> tuple[set[tuple[str, str]], set[str], int]:
    """Kinds of knob and thread that were written, names of all threads, wake-ups between vCPUs of a guest."""
    written, names, edges = set(), [], 0
    for line in map(json.loads, record.read_text().splitlines()):
        if "workloads" in line:
            names = [vcpu[3] for workload in line["workloads"] for vcpu in workload["vcpus"]]
        written |= {
            (knob, names[vcpu])
            for vcpu, knob, _, _, _, outcome, _ in line.get("results", ())
            if outcome == Outcome.APPLIED and isinstance(vcpu, int)
        }
        edges += sum(count for used in line.get("usage", ()) for _, count in used[6])
    return written, set(names), edges


def test_guests_are_found_weighted_watched_and_put_back(fleet: Fleet, tmp_path: Path) -> None:
    answered = ask(fleet.guests[-1])
    assert answered["completed"] == answered["arrivals_scheduled"]
    before = fleet.look()
    assert len(before.threads) >= len(fleet.guests) * VCPUS
    with daemon(fleet, tmp_path) as running:
        wait_for(lambda: running.manages({one.name for one in fleet.guests}))
        wait_for(lambda: {TSA, RLA} <= fleet.changed(before), every_s=0.1)
        touched = {line.split()[1] for line in differences(before, fleet.look()) if line.startswith("thread")}
        assert touched <= {str(vcpu.tid) for vcpu in before.threads if is_vcpu(vcpu.pid, vcpu.tid)}
    assert differences(before, fleet.look()) == ()
    written, names, edges = of_record(running.record)
    assert names == {"CPU 0/TCG", "CPU 1/TCG"}
    assert {knob for knob, _ in written} >= {"weight", "rescheduling_latency"}
    assert edges > 0


def test_a_guest_that_is_killed_in_a_period_and_a_libvirtd_that_crashes(fleet: Fleet, tmp_path: Path) -> None:
    import libvirt

    before = fleet.look()
    with daemon(fleet, tmp_path) as running:
        wait_for(lambda: running.manages(fleet.running()))
        wait_for(lambda: RLA in fleet.changed(before))
        connection = libvirt.open(fleet.libvirtd.uri)
        time.sleep(0.1)  # anywhere in a period
        connection.lookupByName(fleet.guests[0].name).destroy()
        connection.close()
        left = {one.name for one in fleet.guests[1:]}
        wait_for(lambda: running.manages(left))
        fleet.libvirtd.kill()
        assert running.manages(left)
        fleet.libvirtd.start()
        # Where cpu is on cgroup v1 beside v2, libvirt 9.0 ends the domains that it finds running.
        wait_for(lambda: len(running.workloads()) == fleet.libvirtd.running())
    after = fleet.look()
    kept = {path: weight for path, weight in before.groups.items() if path in after.groups}
    assert differences(Fingerprint(before.threads, kept), after) == ()


def is_vcpu(pid: int, tid: int) -> bool:
    """By the name that QEMU gave the thread."""
    return Path(f"/proc/{pid}/task/{tid}/comm").read_text().startswith("CPU ")

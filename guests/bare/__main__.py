"""Starts one guest, asks it and shows who woke whom: `python -m guests.bare helpers=2 background=8`.

Exit status: 0 done, 1 failed or interrupted, 3 this machine lacks something.
"""

from __future__ import annotations

import sys
from contextlib import closing

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.errors import ended_by_signals
from guests.bare.client import Client, Kind, Request
from guests.bare.machine import NotUpError, running, why_not_kvm
from guests.bare.words import Accelerator
from guests.built import HostCannotError

VCPUS, REQUESTS = 4, 200
REQUEST = Request(Kind.FANOUT, serial_us=100, helper_us=200)


def main(options: str) -> int:
    """Prints a line for each vCPU, or one on standard error; returns the exit status."""
    try:
        with ended_by_signals():
            _show(options)
    except Refusal as interrupted:
        return _failed(interrupted.status, interrupted.lines[0])
    except HostCannotError as cannot:
        return _failed(ExitStatus.HOST, str(cannot))
    except NotUpError as why:
        return _failed(ExitStatus.FAILED, str(why))
    return ExitStatus.DONE


def _failed(status: ExitStatus, line: str) -> int:
    print(f"guests.bare: {line}", file=sys.stderr)
    return status


def _show(options: str) -> None:
    why = why_not_kvm()
    print(why or "KVM serves here")
    with (
        running(Accelerator.TCG if why else Accelerator.KVM, VCPUS, options) as guest,
        closing(Client(guest.address)) as client,
    ):
        print(f"{guest.online} of {VCPUS} vCPUs, pid {guest.pid}; {REQUESTS} requests")
        client.statistics(0)  # QEMU knows the guest's address now
        for _ in range(REQUESTS):
            client.serve(REQUEST)
        for vcpu in range(VCPUS):
            its = client.statistics(vcpu)
            print(
                f"vCPU {vcpu}: {its.jobs} jobs, {its.halts} halts, {its.quanta} quanta of background; woken"
            )
            print(f"  by vCPUs {its.woken_by}, device {its.woken_by_device}, timer {its.woken_by_timer}")


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))

"""Starts one guest, asks it and shows who woke whom: `python -m guests.bare helpers=2 background=8`."""

from __future__ import annotations

import sys
from contextlib import closing

from guests.bare.client import Client, Kind, Request
from guests.bare.machine import running, why_not_kvm
from guests.bare.words import Accelerator

VCPUS, REQUESTS = 4, 200
REQUEST = Request(Kind.FANOUT, serial_us=100, helper_us=200)


def main(options: str) -> None:
    """Prints a line for each vCPU."""
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
    main(" ".join(sys.argv[1:]))

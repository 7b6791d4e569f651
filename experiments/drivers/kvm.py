"""A KVM virtual machine whose vCPUs serve together, and our open-loop client. The guest is that of
vm-images/bare: it has no kernel of its own, so it comes up within a second wherever KVM is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from uuid import NAMESPACE_OID, uuid5

from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import Child
from guests.bare.client import MOST_CPUS, Client
from guests.bare.words import Accelerator, forwarding, free_ports, online, qemu_words, said_up

from .options import options_of, refusal, whole
from .served import BESIDE, asked_when_up, background_of, client
from .services import found

WORK = {"serial-us": "100", "helper-us": "200"}
"""Of a request: on the first vCPU, and then on each of the others that serve."""

SPEED = "rounds-per-us"
OPTIONS = {**BESIDE, **WORK, "connections": "64", SPEED: "1000"}
"""`background` vCPUs burst; a burst begins when the one before and a rest are over. A connection has one
request on its way. So many rounds of the guest's loop, of eight instructions, are a microsecond of work."""

VCPUS, VCPU, MAIN = "CPU *", "CPU {}/KVM", "qemu-system-x86"
"""As QEMU's threads are called."""

UUID = "-uuid"
"""libvirt gives each QEMU one, and the daemon knows a domain's by that."""

FEWEST = 2
"""vCPUs that serve: the first has no helper otherwise."""

DEVICE, MODULE = "/dev/kvm", "kvm_amd"
"""The module is what an emulated machine has."""

ANSWER_S = 0.5
"""For a guest to answer, on a busy host."""

SECOND_US = 1_000_000
MOST_REST_US = (2**32 - 1) // 1000
"""The guest's timer counts so many nanoseconds (vm-images/bare/src/background.c)."""


@dataclass(frozen=True, slots=True)
class Kvm:
    """`threads` are vCPUs that serve: one with the network card, and its helpers."""

    name: str = "kvm"
    kind: WorkKind = WorkKind.SERVICE
    package: str = "qemu-system-x86"
    program: str = "dasec-kvm"
    vcpu_names: tuple[str, ...] = (VCPUS,)
    is_exact: bool = True

    def missing(self) -> str | None:
        """Of the client, and of a QEMU with a guest, which are put together once; or of KVM."""
        made = missing_tool()
        if made is None and found(self.program) is None:
            return f"{self.program}: not found: make -C experiments/services {self.name} ({self.package})"
        if made is None and not os.access(DEVICE, os.R_OK | os.W_OK):
            return f"{DEVICE}: is not there, or not for us: load the module kvm, or be root"
        return made

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads + background_of(order, options_of(order, OPTIONS))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        self._told(order)
        return tuple(VCPU.format(number) for number in range(order.threads))

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        told, vcpus, ports = self._told(order), self.vcpus(order), free_ports()
        order.folder.mkdir(parents=True)
        console = order.folder / "console"
        words = qemu_words(Accelerator.KVM, vcpus, told, console, forwarding(ports))
        words += [UUID, str(uuid5(NAMESPACE_OID, order.name))]
        command = (str(found(self.program) or self.program), *words)
        server = Child.start(order.name, place, command, order.folder / "server.log", serves=ports)

        def ask() -> ToolRun:
            if (up := online(console)) != vcpus:
                raise failure(f"{order.name}: {up} of {vcpus} vCPUs have come up")
            options = options_of(order, OPTIONS)
            asked = {name: options[name] for name in (*WORK, "connections")}
            tool = client(order, place, "bare", {**asked, "host": LOOPBACK, "port": str(ports[0])})
            return ToolRun(order, tool, server)

        return asked_when_up(server, lambda: said_up(console) and answers(ports[0]), ports[0], ask)

    def _told(self, order: WorkOrder) -> str:
        """What the guest is told. Refuses what it cannot do."""
        options = options_of(order, OPTIONS)
        for name, least in (*((name, 0) for name in WORK), ("connections", 1), (SPEED, 1)):
            whole(order, name, options[name], least)
        if not FEWEST <= order.threads <= self.vcpus(order) <= MOST_CPUS:
            raise refusal(
                order,
                "threads",
                f"must be {FEWEST} at least, and {MOST_CPUS} at most with background, got '{order.threads}'",
            )
        return f"helpers={order.threads - 1} rounds_per_us={options[SPEED]} {_background(order, options)}"


def answers(port: int) -> bool:
    """Does the guest? QEMU drops what comes before it knows the guest's address."""
    with contextlib.suppress(OSError), closing(Client((LOOPBACK, port))) as asking:
        asking.statistics(0, ANSWER_S, 1)
        return True
    return False


def _background(order: WorkOrder, options: Mapping[str, str]) -> str:
    """As the guest is told. Refuses bursts that leave no rest, or too long a one."""
    burst_us, rest_us = whole(order, "burst-us", options["burst-us"]), 0.0
    with contextlib.suppress(ValueError, ZeroDivisionError):
        rest_us = SECOND_US / float(options["bursts-per-s"]) - burst_us
    if not 1 <= rest_us <= MOST_REST_US:
        wanted = f"must leave a rest of 1 us to {MOST_REST_US / SECOND_US:.1f} s after each of {burst_us} us"
        raise refusal(order, "bursts-per-s", f"{wanted}, got '{options['bursts-per-s']}'")
    mask = ((1 << background_of(order, options)) - 1) << order.threads
    return f"background={mask} burst_us={burst_us} gap_us={rest_us:.0f}"

"""What a status file says: threads, masks, opting in; and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.model import Core
from dasec.workloads.libvirt.metadata import Consent
from dasec.workloads.libvirt.status_file import DomainStatus, NotAStatus, VcpuThread, parse

from .fakelibvirt import domain_xml


def status(
    threads: str = "<vcpu id='0' pid='11'/><vcpu id='1' pid='12'/>",
    *,
    more: str = "",
    vcpu: str = "",
    inside: str = "",
) -> bytes:
    domain = domain_xml("vm-a", vcpu=vcpu, inside=inside)
    text = f"<domstatus state='running' pid='10'><vcpus>{threads}</vcpus>{more}{domain}</domstatus>"
    return text.encode()


CAPTURED = Path(__file__).with_name("status-9.0.xml")
"""Of libvirt 9.0 and QEMU 7.2 (Debian 12): a domain with 2 of 4 vCPUs, after `dasec vm enable --share 2048`
and one more vCPU plugged in."""


def test_a_file_of_libvirt_9() -> None:
    anywhere = frozenset({Core(0), Core(1)})
    assert parse(CAPTURED.read_bytes()) == DomainStatus(
        "vm-a",
        "4dea22b3-1d52-d8f3-2516-782e98ab3fa0",
        17271,
        (
            VcpuThread(0, 17278, anywhere),
            VcpuThread(1, 17279, frozenset({Core(1)})),
            VcpuThread(2, 17320, anywhere),
        ),
        Consent(2048),
        io_threads=1,
    )


def test_a_vcpu_without_a_thread_is_none_yet() -> None:
    found = parse(status("<vcpu id='0' pid='11'/><vcpu id='1'/><vcpu id='2' pid='0'/>"))
    assert found.vcpus == (VcpuThread(0, 11, None),)


def test_vcpus_may_have_gaps_in_their_numbers() -> None:
    found = parse(status("<vcpu id='0' pid='11'/><vcpu id='3' pid='12'/>"))
    assert [vcpu.number for vcpu in found.vcpus] == [0, 3]


def test_vcpus_without_numbers_are_in_order() -> None:
    assert [vcpu.number for vcpu in parse(status("<vcpu pid='11'/><vcpu pid='12'/>")).vcpus] == [0, 1]


def test_where_placement_is_automatic_numads_advice_counts() -> None:
    advice = "<numad nodeset='0' cpuset='4-5'/>"
    automatic = parse(status(more=advice, vcpu=" placement='auto'", inside=pin(1, "7")))
    assert [vcpu.cores for vcpu in automatic.vcpus] == [frozenset({4, 5}), frozenset({7})]
    static = parse(status(more=advice, vcpu=" placement='static' cpuset='0'"))
    assert [vcpu.cores for vcpu in static.vcpus] == [frozenset({0}), frozenset({0})]


def pin(vcpu: int, cpus: str) -> str:
    return f"<cputune><vcpupin vcpu='{vcpu}' cpuset='{cpus}'/></cputune>"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no XML"),
        (b"<domstatus", "no XML"),
        (b"<domain/>", "its element is <domain>"),
        (b"<domstatus/>", "its element is <domstatus>, not a <domstatus> with a <domain>"),
        (b"<domstatus><domain/></domstatus>", "no name or no uuid"),
        (status("<vcpu id='0' pid='x'/>"), "invalid literal"),
        (status(inside=pin(0, "all")), "'all' is neither a CPU number nor a range"),
    ],
)
def test_a_file_that_is_no_status_says_why(text: bytes, why: str) -> None:
    with pytest.raises(NotAStatus, match=why):
        parse(text)

"""A journal that schema 1 wrote is put back, whole or without its header."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.knobs.groups import CGROUP, CONTROLLERS
from dasec.knobs.knob import GroupId, KnobRef, NativeValue
from dasec.knobs.masks import AFFINITY
from dasec.knobs.patched import GRANULARITY, THREAD_WEIGHT
from dasec.knobs.quotas import QUOTA
from dasec.knobs.slices import SLICE
from dasec.knobs.weights import WEIGHT_V1
from dasec.linux.namespaces import own_namespaces
from dasec.model import VcpuId
from dasec.safety.journal import codec, journal
from dasec.safety.journal.journal import NAME, Journal
from dasec.safety.restore import put_all_back

from .small_kernel import SmallKernel

OLD = Path(__file__).parent / "journals" / "schema-1.journal"
"""Written by commit 7b7507a."""

BOOT = "5c0ffee5-0000-4000-8000-000000000001"
MAIN, SECOND, THIRD, CHILD = (
    VcpuId(100, 100, 50),
    VcpuId(100, 101, 51),
    VcpuId(200, 200, 60),
    VcpuId(100, 105, 2000),
)
VCPU0, OWN, OTHER = "/vm/vcpu0", "/vm/dasec-101", "/vm2/vcpu0"


def group(path: str, inode: int, inhabitant: VcpuId | None = None) -> GroupId:
    return GroupId(f"/cg{path}", inode, inhabitant)


HELD: dict[KnobRef, tuple[NativeValue, tuple[NativeValue, ...]]] = {
    KnobRef(MAIN, SLICE): (0, (4_000_000, 6_000_000)),
    KnobRef(MAIN, AFFINITY): ((), ((0,),)),
    KnobRef(SECOND, SLICE): (0, (5_000_000,)),
    KnobRef(group(VCPU0, 4711, MAIN), WEIGHT_V1, "cpu.shares"): (1024, (2000,)),
    KnobRef(group("/vm", 12), CONTROLLERS, "cgroup.subtree_control"): ("", ("cpu",)),
    KnobRef(SECOND, CGROUP, "/cg"): ("/vm", (OWN,)),
    KnobRef(group(OWN, 4712, SECOND), WEIGHT_V1, "cpu.shares"): (1024, (512,)),
    KnobRef(group(OTHER, 4713, THIRD), QUOTA, "cpu.cfs_quota_us"): (
        "40000 100000",
        ("max 10000", "2500 10000"),
    ),
    KnobRef(group(OTHER, 0, THIRD), WEIGHT_V1, "cpu.shares"): (900, (1800,)),
    KnobRef(THIRD, GRANULARITY): ("default", (500_000,)),
    KnobRef(THIRD, THREAD_WEIGHT): ("default", (1500,)),
}


@pytest.fixture
def kernel() -> SmallKernel:
    """As that daemon left it; and a thread was born meanwhile."""
    kernel = SmallKernel()
    for path in ("/vm", VCPU0, OWN, "/vm2"):
        kernel.make_group(path)
    kernel.make_group(OTHER, 900)
    kernel.quotas[f"/cg{OTHER}/cpu.cfs_quota_us"] = "40000 100000"
    kernel.controllers["/cg/vm/cgroup.subtree_control"] = ""
    for who, where in ((MAIN, VCPU0), (SECOND, "/vm"), (THIRD, OTHER)):
        kernel.start(who, where)
    for ref, (_, ours) in HELD.items():
        kernel.set(ref, ours[-1])
    kernel.clone(MAIN, CHILD)
    return kernel


@pytest.fixture(params=[True, False], ids=["whole", "without its header"])
def directory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    boot = tmp_path / "boot"
    boot.write_text(BOOT)
    monkeypatch.setattr(journal, "_BOOT_ID", str(boot))
    lines = OLD.read_bytes().splitlines(keepends=True)
    place = tmp_path / "state"
    place.mkdir(mode=0o700)
    (place / NAME).write_bytes(b"".join(lines if request.param else lines[1:]))
    return place


def test_all_that_it_holds_is_known_by_its_owner(directory: Path) -> None:
    old, _ = Journal.open(directory)
    assert {one.ref: (one.prior, one.ours) for one in old.outstanding()} == HELD
    assert old.groups() == ("/cg/vm/dasec-101",)
    old.close()


def test_all_of_it_is_put_back_also_what_a_newborn_has(directory: Path, kernel: SmallKernel) -> None:
    old, _ = Journal.open(directory)
    done = put_all_back(old, kernel)
    assert (done.put_back, done.left_alone, done.failed) == (len(HELD) + 2, (), ())
    assert old.outstanding() == ()
    for ref, (prior, _) in HELD.items():
        if ref.owner != group(OWN, 4712, SECOND):
            assert kernel.read(ref) in (prior, kernel.in_force(ref, prior) if ref.sake else prior), ref
    assert kernel.read(KnobRef(CHILD, SLICE)) == kernel.in_force(KnobRef(CHILD, SLICE), 0)
    assert f"/cg{OWN}/cpu.shares" not in kernel.weights
    old.close()


def test_what_is_held_goes_on_in_the_new_schema(directory: Path) -> None:
    Journal.open(directory)[0].close()
    header = codec.decode_header((directory / NAME).read_bytes().split(b"\n")[0])
    assert header == codec.Header(codec.SCHEMA, BOOT, own_namespaces())
    again, notices = Journal.open(directory)
    assert notices == ()
    assert {one.ref for one in again.outstanding()} == set(HELD)
    again.close()

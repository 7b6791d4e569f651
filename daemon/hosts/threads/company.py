"""Who is in a thread's group with it: may its weight be set there for this thread's sake?"""

from __future__ import annotations

from ...linux import procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...model import VcpuId
from ...roster import Terms


def has_to_itself(
    hierarchy: Hierarchy, group: str, who: VcpuId, terms: Terms | None, proc: str = procfs.PROC
) -> bool:
    """Is it alone in the group? In libvirt's groups a thread may have company that works for the same QEMU: a
    vCPU what KVM has started from it, the main thread all that is of no other process. Raises OSError."""
    if terms is None:
        return alone(hierarchy, group, who.tid)
    if _is_top(hierarchy, group) or hierarchy.has_children(group):
        return False
    if hierarchy.holds_only(group, who.tid):
        return True
    members = set(hierarchy.members(group))
    own = members & set(procfs.thread_ids(who.pid, proc))
    company = own - {who.tid} if not terms.emulator else set()
    return (
        who.tid in members
        and all(_is_the_kernels(who.pid, tid, proc) for tid in company)
        and all(_is_nobodys(tid, proc) for tid in members - own)
    )


def alone(hierarchy: Hierarchy, group: str, tid: int) -> bool:
    """Does a group hold this thread and nothing else? The top group never does."""
    if _is_top(hierarchy, group):
        return False
    return hierarchy.holds_only(group, tid) and not hierarchy.has_children(group)


def _is_top(hierarchy: Hierarchy, group: str) -> bool:
    return group in ("/", hierarchy.root)


def _is_nobodys(tid: int, proc: str) -> bool:
    """Is it of no other process? The kernel puts threads of its own into a group of somebody's only to work
    for him: vhost's before 6.4, and one of KVM's for each VM before 6.13 (cgroup_attach_task_all()). One that
    has ended meanwhile is nobody. One that we cannot see, from inside a namespace, is called 0."""
    try:
        return tid > 0 and procfs.read_stat(tid, tid, proc).is_kernel_thread
    except ThreadGone:
        return True


def _is_the_kernels(pid: int, tid: int, proc: str) -> bool:
    """KVM starts one thread for each VM from the vCPU that runs first, so it is born in that one's group
    (kvm-nx-lpage-recovery, 6.14, 931656b9e2ff)."""
    try:
        return procfs.read_stat(pid, tid, proc).is_user_worker
    except ThreadGone:
        return True

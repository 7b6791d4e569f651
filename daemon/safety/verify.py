"""`dasec verify`: does the kernel hold what the journal says that we meant? Changes nothing."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..linux import cgroupfs
from ..linux.errors import HierarchyMissing, NotFair, ThreadGone
from .fate import Fate, as_before, is_in_force, shown
from .groups import abandoned_probes
from .journal.directory import Notice, in_use
from .journal.journal import DIRECTORY, peek
from .journal.ledger import Ledger
from .kernel import Kernel, LinuxKernel

Finding = Notice
"""What is not as it should be, where, and how to mend it."""

OUR_GROUP = re.compile(r"dasec-[0-9]+")
"""The name of every group that we make: dasec-<thread id> (docs/decisions/0005-own-groups.md)."""

_SECOND_LOOK_S = 0.1
"""A living daemon writes between our two readings; what is wrong stays wrong for longer."""

_MEND = "run `dasec restore`"
_REMOVE = "no journal here knows it: if no other dasec runs, remove it with rmdir"
_LINUX = LinuxKernel()


def verify(*directories: Path, kernel: Kernel = _LINUX) -> tuple[Finding, ...]:
    """Everything that is not as it should be by the journals in these, or in the default place; nothing means
    clean. Raises OSError: cannot look."""
    directories = directories or (DIRECTORY,)
    findings = _look(directories, kernel)
    if not findings:
        return ()
    time.sleep(_SECOND_LOOK_S)
    lasting = set(findings)
    return tuple(one for one in _look(directories, kernel) if one in lasting)


def _look(directories: Sequence[Path], kernel: Kernel) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    known: set[str] = set()
    for directory in directories:
        try:
            ledger, notices, _ = peek(directory)
            running = in_use(directory)
        except FileNotFoundError:
            continue
        known.update(ledger.groups)
        findings += notices
        if running:
            findings += _changed(ledger, kernel)
        elif ledger.held or ledger.groups:
            findings += _waiting(ledger, kernel)
            left = f"{len(ledger.held)} knobs and {len(ledger.groups)} groups are not put back"
            findings.append(Finding(f"no daemon runs and {left}", str(directory), _MEND))
    findings += [
        Finding("group left over", path, _REMOVE if OUR_GROUP.fullmatch(Path(path).name) else _MEND)
        for path in our_groups()
        if path not in known
    ]
    return tuple(findings)


def our_groups() -> tuple[str, ...]:
    """Every directory of ours in the cpu hierarchy, inner ones first, and what a killed probe left."""
    try:
        hierarchy = cgroupfs.find_hierarchy()
    except HierarchyMissing:
        return ()
    groups = hierarchy.below(hierarchy.root, most=sys.maxsize).groups
    ours = [group for group in reversed(groups) if OUR_GROUP.fullmatch(group.rpartition("/")[2])]
    return tuple(hierarchy.directory(group) for group in (*ours, *abandoned_probes(hierarchy)))


def _waiting(ledger: Ledger, kernel: Kernel) -> Iterator[Finding]:
    """Slices that nobody can put back at present."""
    for one in ledger.outstanding():
        if one.ref.kind.fair_only:
            try:
                kernel.read(one.ref)
            except NotFair:
                yield Finding(str(Fate.WAITING), str(one.ref), f"{_MEND} then")
            except (ThreadGone, OSError):
                continue


def _changed(ledger: Ledger, kernel: Kernel) -> Iterator[Finding]:
    """Knobs that hold what we did not write."""
    for one in ledger.outstanding():
        try:
            present = kernel.read(one.ref)
            # The prior value is no finding: entered in the journal and not written yet.
            meant = as_before(one, present, kernel) or any(
                is_in_force(one.ref, value, present, kernel) for value in one.ours
            )
        except ThreadGone:
            continue
        except NotFair:
            yield Finding(str(Fate.WAITING), str(one.ref), "the daemon sees to it")
            continue
        except (OSError, HierarchyMissing) as error:
            yield Finding(f"cannot be read ({error})", str(one.ref), "see `dasec probe`")
            continue
        if not meant:
            what = f"holds {shown(present)}, we meant {shown(one.ours[-1])}"
            yield Finding(what, str(one.ref), "somebody else writes it: leave it to one of the two")

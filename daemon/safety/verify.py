"""`dasec verify`: does the kernel hold what the journal says that we meant? Changes nothing."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from ..linux import cgroupfs
from ..linux.errors import HierarchyMissing, ThreadGone
from .directory import Directory, Notice
from .journal import DIRECTORY, peek
from .kernel import Kernel, LinuxKernel
from .knobs import as_before, describe, shown
from .ledger import Ledger

Finding = Notice
"""What is not as it should be, where, and how to mend it."""

OUR_GROUP = re.compile(r"dasec-[0-9]+")
"""The name of every group that we make: dasec-<thread id> (docs/decisions/0005-own-groups.md)."""

_SECOND_LOOK_S = 0.1
"""A living daemon writes between our two readings; what is wrong stays wrong for longer."""

_MEND = "run `dasec restore`"
_LINUX = LinuxKernel()


def verify(directory: Path = DIRECTORY, kernel: Kernel = _LINUX) -> tuple[Finding, ...]:
    """Everything that is not as it should be; nothing means clean. Raises OSError: cannot look."""
    findings = _look(directory, kernel)
    if not findings:
        return ()
    time.sleep(_SECOND_LOOK_S)
    lasting = set(findings)
    return tuple(one for one in _look(directory, kernel) if one in lasting)


def _look(directory: Path, kernel: Kernel) -> tuple[Finding, ...]:
    try:
        ledger, notices = peek(directory)
        running = _running(directory)
    except FileNotFoundError:
        ledger, notices, running = Ledger(), (), False
    findings = list(notices)
    if running:
        findings += _changed(ledger, kernel)
    elif ledger.held or ledger.groups:
        what = f"no daemon runs and {len(ledger.held)} knobs and {len(ledger.groups)} groups are not put back"
        findings.append(Finding(what, str(directory), _MEND))
    advice = "no journal here knows it: if no other dasec runs, remove it with rmdir"
    findings += [
        Finding("group left over", path, advice) for path in our_groups() if path not in ledger.groups
    ]
    return tuple(findings)


def our_groups() -> tuple[str, ...]:
    """Every directory of ours in the cpu hierarchy, inner ones first."""
    try:
        top = cgroupfs.find_hierarchy().mount
    except HierarchyMissing:
        return ()
    found = []
    for path, names, _ in os.walk(top, topdown=False):
        found += [f"{path}/{name}" for name in names if OUR_GROUP.fullmatch(name)]
    return tuple(found)


def _running(directory: Path) -> bool:
    place = Directory(directory, create=False)
    try:
        return place.locked()
    finally:
        place.close()


def _changed(ledger: Ledger, kernel: Kernel) -> Iterator[Finding]:
    """Knobs that hold what we did not write."""
    for one in ledger.outstanding():
        try:
            present = kernel.read(one.ref)
            # The prior value is no finding: entered in the journal and not written yet.
            meant = present in one.ours or as_before(one, present, kernel)
        except ThreadGone:
            continue
        except (OSError, HierarchyMissing) as error:
            yield Finding(f"cannot be read ({error})", describe(one.ref), "see `dasec probe`")
            continue
        if not meant:
            what = f"holds {shown(present)}, we meant {shown(one.ours[-1])}"
            yield Finding(what, describe(one.ref), "somebody else writes it: leave it to one of the two")

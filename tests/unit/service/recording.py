"""Records and a status with little in them, for who reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dasec.config.subject import Subject
from dasec.hosts.fake.fake import EXACT
from dasec.log import Announcer
from dasec.model import Change, Decision, Knob, Outcome, Reason, Result
from dasec.policies import Parameters
from dasec.record.entries import Entry
from dasec.record.file import RecordFile
from dasec.service.status import INTERVAL_NS
from dasec.service.status_file import StatusFile

from .periods import STATE, busy_history


def recorded(
    path: Path, entries: Sequence[Entry], max_bytes: int = 1 << 30, policy: str = "none"
) -> list[Entry]:
    file = RecordFile(path, policy, Parameters(), Announcer(), max_bytes=max_bytes, files=3)
    for entry in entries:
        file.write(entry, STATE)
    file.close()
    return list(entries)


def wrote(
    entry: Entry, knob: Knob, new: int, rule: str, outcome: Outcome = Outcome.APPLIED, detail: str = ""
) -> Entry:
    """The same period, but the first vCPU of `hungry` got a new value of a knob at its end."""
    vcpu = entry.period.workloads[0].vcpus[0].id
    result = Result(Change(vcpu, knob, 1024, new, rule), outcome, detail)
    reason = Reason(vcpu, knob, rule, (("consumed_ns", 80_000_000), ("cores", 2)))
    return entry._replace(results=(result,), decision=Decision({}, (reason,), STATE))


def holding(entry: Entry, weight: int | None) -> Entry:
    """The same period, but the first vCPU of `hungry` has that weight in it."""
    vcpu = entry.period.workloads[0].vcpus[0].id
    knobs = {**entry.period.knobs, vcpu: entry.period.knobs[vcpu]._replace(weight=weight)}
    return entry._replace(period=replace(entry.period, knobs=knobs))


def told_status(folder: Path, record: Path | None) -> None:
    now_ns = 0
    file = StatusFile(folder, Subject("dasec", 80, False, EXACT, record=record), Announcer(), lambda: now_ns)
    now_ns = INTERVAL_NS
    file.write(busy_history(1)[0], STATE)

"""A dry run says what it would have written."""

from __future__ import annotations

from pathlib import Path

from dasec.model import Change, Knob, Outcome, Result
from dasec.service.unwritten import Unwritten

from .periods import STATE, busy_history


def told(record: Path | None, *outcomes: Outcome) -> str:
    """After two looks at each of which two knobs of a vCPU and one of another had that outcome."""
    noted = Unwritten(record)
    for entry in busy_history(2):
        first, second, *_ = (vcpu.id for vcpu in entry.period.workloads[0].vcpus)
        wishes = [
            Change(first, Knob.WEIGHT, 1024, 512, "critical.path"),
            Change(first, Knob.RESCHEDULING_LATENCY, 1, 2, "critical.later"),
            Change(second, Knob.WEIGHT, 1024, 256, "critical.path"),
        ]
        results = tuple(Result(wish, outcome) for wish in wishes for outcome in outcomes)
        noted.write(entry._replace(results=results), STATE)
    return noted.line()


def test_a_knob_that_is_wished_for_at_every_look_counts_once_and_a_record_says_why() -> None:
    assert told(Path("/tmp/trial.jsonl"), Outcome.DRY_RUN) == (
        "dry run: 3 knobs of 2 vCPUs would have been written by critical.later, critical.path;"
        " `dasec explain WORKLOAD --record /tmp/trial.jsonl` says why"
    )


def test_without_a_record_it_says_how_to_have_one() -> None:
    assert told(None, Outcome.DRY_RUN).endswith(
        "`dasec explain WORKLOAD --record FILE` says why, of a run with --record FILE"
    )


def test_what_was_never_tried_does_not_count() -> None:
    assert told(None, Outcome.VANISHED, Outcome.REJECTED) == "dry run: no knob would have been written"


def test_one_knob_of_one_vcpu_is_said_as_one() -> None:
    noted = Unwritten(None)
    entry = busy_history(1)[0]
    wish = Change(entry.period.workloads[0].vcpus[0].id, Knob.WEIGHT, 1024, 512, "critical.path")
    noted.write(entry._replace(results=(Result(wish, Outcome.DRY_RUN),)), STATE)
    assert noted.line().startswith("dry run: 1 knob of 1 vCPU would have been written by critical.path;")

"""`dasec explain` says why each knob is what it is, however long ago it was written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.commands.explain import Story, VcpuStory, explain, record_of, render
from dasec.errors import ExitStatus, Refusal
from dasec.model import IDLE, Knob, Knobs, Limits, Outcome, OwnLimit
from dasec.policies import POLICIES, RULES
from dasec.service.status import INTERVAL_NS

from .command import REPOSITORY, dasec
from .periods import busy_history
from .recording import holding, recorded, told_status, wrote

DECIDING = ("tsa", "rla", "rcr", "critical", "bandwidth", "guard", "reservations", "rivals")
RULE = re.compile(rf'"((?:tsa|rla|rcr|guard|bandwidth|reserve|{"|".join(POLICIES)})\.[a-z]+)"')


def test_a_knob_is_explained_by_its_last_write_and_what_the_rule_saw(tmp_path: Path) -> None:
    first, *rest = busy_history(10)
    recorded(
        tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *(holding(e, 1126) for e in rest)]
    )
    weight, latency, affinity = explain(tmp_path / "r", "hungry", None)["vcpus"][0]["knobs"]
    assert weight["value"] == 1126
    assert weight["written"] == {
        "rule": "tsa.raise",
        "inputs": [("consumed_ns", 80_000_000), ("cores", 2)],
        "prior": 1024,
        "new": 1126,
        "outcome": "applied",
        "detail": "",
        "period": 0,
        "seconds_ago": 0.72,
    }
    assert (latency["value"], latency["written"]) == (4_000_000, None)
    assert (affinity["value"], affinity["written"]) == ("0-1", None)


def test_a_write_of_the_last_period_is_already_its_value(tmp_path: Path) -> None:
    *before, last = busy_history(3)
    recorded(tmp_path / "r", [*before, wrote(last, Knob.WEIGHT, 1126, "tsa.raise")])
    assert explain(tmp_path / "r", "hungry", None)["vcpus"][0]["knobs"][0]["value"] == 1126


def test_a_write_that_lies_many_whole_lines_and_files_back_is_still_known(tmp_path: Path) -> None:
    first, *rest = busy_history(8000)
    recorded(tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *rest], max_bytes=3 << 20)
    assert (tmp_path / "r.1").exists()
    written = explain(tmp_path / "r", "hungry", None)["vcpus"][0]["knobs"][0]["written"]
    assert written is not None
    assert (written["rule"], written["period"]) == ("tsa.raise", 0)


def test_a_person_reads_value_time_rule_and_numbers(tmp_path: Path) -> None:
    first, *rest = busy_history(10)
    recorded(
        tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), *(holding(e, 1126) for e in rest)]
    )
    text = render(explain(tmp_path / "r", "hungry", None)).splitlines()
    assert text[1:6] == [
        "v100 (thread 100)",
        "  weight               1126",
        "                       written 0.7 s ago: 1024 -> 1126: it used up its slice and still wanted to"
        " run, so its part of the workload grows (tsa.raise)",
        "                       it saw consumed 80 ms, cores 2",
        "  rescheduling latency 4 ms, as found: nothing was written",
    ]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (512, "we wrote 1126: somebody else has changed it since"),
        (None, "not ours: this host has no such knob for it"),
    ],
)
def test_a_knob_that_somebody_else_has_now_is_said_to_be_so(
    tmp_path: Path, after: int | None, expected: str
) -> None:
    first, second = busy_history(2)
    recorded(tmp_path / "r", [wrote(first, Knob.WEIGHT, 1126, "tsa.raise"), holding(second, after)])
    assert expected in render(explain(tmp_path / "r", "hungry", None))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.REJECTED, "rejected 0.1 s ago (no keeper yet)"),
        (Outcome.DRY_RUN, "dry run, would be written 0.1 s ago"),
    ],
)
def test_a_write_that_failed_or_was_a_dry_run_is_told_apart(
    tmp_path: Path, outcome: Outcome, expected: str
) -> None:
    first, second = busy_history(2)
    tried = wrote(first, Knob.WEIGHT, 1126, "tsa.raise", outcome, "no keeper yet")
    recorded(tmp_path / "r", [tried, second])
    assert expected in render(explain(tmp_path / "r", "hungry", None))


def test_a_workload_of_which_nothing_was_written_is_said_so(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    assert "nothing was written for it so far" in render(explain(tmp_path / "r", "calm", None))


def test_a_workload_with_a_limit_says_what_that_cost_and_what_caps_spared(tmp_path: Path) -> None:
    entries = []
    for entry in busy_history(3):
        vcpus = [vcpu.id for vcpu in entry.period.workloads[0].vcpus]
        usage = dict.fromkeys(vcpus, IDLE._replace(consumed_ns=50_000_000))
        own = dict.fromkeys(vcpus, OwnLimit(625_000, 30_000_000))
        limits = {"hungry": Limits(1_000_000, 0, 1_000_000, own)}
        entries.append(entry._replace(period=replace(entry.period, usage=usage, limits=limits)))
    recorded(tmp_path / "r", entries)
    told = explain(tmp_path / "r", "hungry", None)
    limit = told["limit"]
    assert limit
    assert (limit["limit_ppm"], limit["throttled_ms"]) == (1_000_000, 3)
    assert {part for _, part in limit["used_up_by"]} == {100 // len(vcpus)}
    assert {ms for _, ms in limit["stopped_ms"]} == {90}
    assert limit["spared_ms"] > 0
    said = render(told)
    assert "limit 1 cores: stopped threads for 0.0 s since the record begins" in said
    assert "without caps and loans it would have stopped all for 0.2 s" in said
    assert explain(tmp_path / "r", "calm", None)["limit"] is None


def test_an_unknown_workload_is_one_line_with_the_nearest_name(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    answer = dasec("explain", "hungri", "--record", tmp_path / "r")
    assert answer.status == ExitStatus.FAILED
    assert answer.errors == [
        f"dasec: no workload 'hungri' in the last period of the record {tmp_path / 'r'}:"
        " did you mean `hungry`?"
    ]


def test_a_thread_that_calls_itself_an_escape_code_does_nothing_to_the_terminal() -> None:
    story = Story(
        workload="a",
        share=1024,
        record="r",
        period=1,
        guard="",
        limit=None,
        vcpus=[VcpuStory(vcpu="\x1b[2J\nweb\udcff", tid=7, knobs=[])],
    )
    assert render(story).splitlines()[-1] == "�[2J�web� (thread 7)"


def test_json_is_what_a_program_reads(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    answer = dasec("explain", "calm", "--record", tmp_path / "r", "--json")
    assert [vcpu["tid"] for vcpu in json.loads(answer.out)["vcpus"]] == [200, 201, 202, 203]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "No such file or directory: give a readable record"),
        (b"root:x:0:0\n", "is not a DASEC record: give a file that `dasec run --record` wrote"),
        (b"", "is empty: give a file that `dasec run --record` wrote"),
    ],
)
def test_a_file_that_tells_nothing_is_one_line(tmp_path: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (tmp_path / "r").write_bytes(content)
    with pytest.raises(Refusal, match=re.escape(f"{tmp_path / 'r'}: {expected}")):
        explain(tmp_path / "r", "hungry", None)


def test_without_a_daemon_or_without_its_record_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="or name a record with --record FILE"):
        record_of(tmp_path, 0)
    told_status(tmp_path, None)
    with pytest.raises(Refusal, match="the daemon keeps no record: start it with"):
        record_of(tmp_path, INTERVAL_NS)


def test_the_running_daemons_record_is_found_by_its_status(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    told_status(tmp_path, tmp_path / "r")
    path, status = record_of(tmp_path, INTERVAL_NS)
    assert explain(path, "calm", status)["guard"] == ""


def test_every_rule_has_a_meaning() -> None:
    used = {
        rule
        for folder in DECIDING
        for path in (REPOSITORY / "daemon" / folder).rglob("*.py")
        for rule in RULE.findall(path.read_text(encoding="utf-8"))
    }
    assert used == set(RULES)


def test_none_of_the_knobs_is_ours_where_the_host_says_so(tmp_path: Path) -> None:
    (entry,) = busy_history(1)
    none = {vcpu: Knobs(None, None, None) for vcpu in entry.period.knobs}
    recorded(tmp_path / "r", [entry._replace(period=replace(entry.period, knobs=none))])
    knobs = explain(tmp_path / "r", "calm", None)["vcpus"][0]["knobs"]
    assert [knob["value"] for knob in knobs] == [None] * 3


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    recorded(tmp_path / "r", busy_history(2))
    command = f"{sys.executable} -m dasec explain hungry --record {tmp_path / 'r'} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_an_answer_does_not_wait_for_pydantic_to_load(tmp_path: Path) -> None:
    """It took twice as long with it."""
    recorded(tmp_path / "r", busy_history(2))
    told_status(tmp_path, tmp_path / "r")
    program = (
        "import sys; from pathlib import Path; from dasec.commands.cli import main\n"
        "from dasec.commands.explain import answer\n"
        f"answer('calm', None, Path({str(tmp_path)!r}), {INTERVAL_NS}, as_json=True)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"pydantic", "pydantic_core", "rich"} & set(loaded.stdout.split())

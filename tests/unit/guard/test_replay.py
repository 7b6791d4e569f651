"""A guarded policy's record decides itself again, verdicts, windows and all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dasec.critical import Critical
from dasec.guard import GuardParameters
from dasec.log import Announcer
from dasec.model import Outcome, PolicyState, Result
from dasec.paper import Dasec
from dasec.plan import plan
from dasec.policies import Parameters, policy_named
from dasec.policy import Policy
from dasec.record.entries import Entry, Stages
from dasec.record.file import RecordFile
from dasec.record.replay import replay

from .world import World

PERIODS = 70
SETTINGS = Parameters(guard=GuardParameters(backoff_periods=20, recheck_periods=20))


def written(path: Path, inner: Policy, max_bytes: int) -> None:
    """The record of a world whose policy does harm, tried again and again."""
    assert SETTINGS.guard
    world = World(lambda _, acted: 5.0 if acted else 1.5, inner=inner, parameters=SETTINGS.guard, noise=0.1)
    policy = policy_named(inner.name, SETTINGS)
    file = RecordFile(path, policy.name, SETTINGS, Announcer(), max_bytes=max_bytes, files=9)
    world.run(PERIODS)
    state: PolicyState = policy.initial_state()
    for index, (period, decision) in enumerate(world.history):
        results = tuple(Result(each, Outcome.APPLIED) for each in plan(period, decision).changes)
        file.write(Entry(index, 0, period, decision, results, (), Stages()), state)
        state = decision.state
    file.close()


@pytest.mark.parametrize("inner", [Dasec(), Critical()], ids=lambda inner: inner.name)
@pytest.mark.parametrize("max_bytes", [10**8, 30_000])
def test_a_guarded_record_replays_whole_and_in_turned_over_files(
    inner: Policy, max_bytes: int, tmp_path: Path
) -> None:
    written(tmp_path / "r", inner, max_bytes)
    files = sorted(tmp_path.iterdir())
    assert (len(files) > 1) is (max_bytes < 10**8)
    assert sum(replay(path).periods for path in files) == PERIODS


def test_the_record_says_what_the_guard_found_and_leaves_out_what_it_measured(tmp_path: Path) -> None:
    written(tmp_path / "r", Dasec(), 10**8)
    _, *lines = [json.loads(line) for line in (tmp_path / "r").read_bytes().splitlines()]
    shown = [line["decision"]["state"] for line in lines if "state" in line["decision"]]
    verdicts = [each["standings"] for each in shown if "standings" in each]
    assert any(standing[1] == "harm" for standings in verdicts for standing in standings)
    assert not any({"trial", "prior", "services", "tallies"} & state.keys() for state in shown)
    assert any("window" in state for state in shown)

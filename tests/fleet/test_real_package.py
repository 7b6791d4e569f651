"""The role with our own package and a real daemon, in an overlay over this machine, without systemd."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .trees import ANSIBLE, tool

pytestmark = [pytest.mark.host, pytest.mark.thorough]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def steps(deb: Path) -> dict[str, dict[str, object]]:
    """The host after each run of the playbook."""
    tool("ansible-playbook")
    command = ["unshare", "--mount", "bash", str(HERE / "real.sh")]
    given = [str(deb), sys.executable, str(ANSIBLE / "rollout.yml")]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["step"]: one for one in found}


def state(step: dict[str, object]) -> dict[str, object]:
    """What the host has, and what its daemon does, after a step."""
    return {name: of for name, of in step.items() if name not in ("step", "changed", "failed", "said")}


def test_a_package_that_the_role_did_not_bring_is_not_removed_as_there_is_no_way_back(
    steps: dict[str, dict[str, object]],
) -> None:
    foreign = steps["foreign"]
    assert (foreign["failed"], foreign["changed"], foreign["package"]) == (1, 0, "installed")


def test_the_real_daemon_passes_the_watch(steps: dict[str, dict[str, object]]) -> None:
    present = steps["present"]
    assert present["failed"] == 0, present["said"]
    assert present["package"] == "installed"
    assert (present["policy"], present["enabled"]) == ("static", "enabled")
    assert present["held"]["affinity"] == 1  # type: ignore[index]
    assert str(present["verify"]).startswith("clean")
    assert present["left"] == ["/run/dasec/journal"]


def test_after_a_wrong_configuration_the_daemon_runs_with_the_one_before(
    steps: dict[str, dict[str, object]],
) -> None:
    nonsense = steps["nonsense"]
    assert nonsense["failed"] == 1
    assert "Unable to restart service dasec" in str(nonsense["said"])
    assert state(nonsense) == state(steps["present"])


def test_a_newer_daemon_that_costs_too_much_fails_its_watch_and_package_and_configuration_before_are_back(
    steps: dict[str, dict[str, object]],
) -> None:
    """The newer one held a knob, in a journal that the one before could not read: it writes as before, so
    nothing of that was left."""
    costly = steps["costly"]
    assert costly["failed"] == 1
    assert "last.own_cpu_percent <= dasec_watch_budget_factor" in str(costly["said"])
    assert state(costly) == state(steps["present"])


def test_an_upgrade_has_the_newer_package_and_its_daemon_passes_the_watch(
    steps: dict[str, dict[str, object]],
) -> None:
    newer = steps["newer"]
    assert newer["failed"] == 0, newer["said"]
    assert (newer["package"], newer["version"]) == ("installed", f"{steps['present']['version']}+1")
    assert (newer["policy"], newer["enabled"]) == ("none", "enabled")
    assert str(newer["verify"]).startswith("clean")
    assert newer["left"] == ["/run/dasec/journal"]


def test_after_a_removal_no_daemon_runs_and_no_journal_is_left(steps: dict[str, dict[str, object]]) -> None:
    absent = steps["absent"]
    assert absent["failed"] == 0, absent["said"]
    assert (absent["package"], absent["policy"], absent["left"]) == ("config-files", None, [])
    assert absent["config"] == steps["newer"]["config"]

"""The role with our own package and a real daemon, in an overlay over this machine, without systemd."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .trees import ANSIBLE, tool

pytestmark = pytest.mark.host
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
    assert str(present["verify"]).startswith("clean")
    assert present["left"] == ["/run/dasec/journal"]


def test_after_a_wrong_configuration_the_daemon_runs_with_the_one_before(
    steps: dict[str, dict[str, object]],
) -> None:
    present, nonsense = steps["present"], steps["nonsense"]
    assert nonsense["failed"] == 1
    assert "Unable to restart service dasec" in str(nonsense["said"])
    same = ("package", "enabled", "config", "policy", "verify", "left")
    assert [nonsense[what] for what in same] == [present[what] for what in same]


def test_after_a_removal_no_daemon_runs_and_no_journal_is_left(steps: dict[str, dict[str, object]]) -> None:
    absent = steps["absent"]
    assert absent["failed"] == 0, absent["said"]
    assert (absent["package"], absent["policy"], absent["left"]) == ("config-files", None, [])
    assert absent["config"] == steps["present"]["config"]

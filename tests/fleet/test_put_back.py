"""However a roll-out fails, each host is as it was before, file by file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from dasec.service.status import ABOVE_BUDGET

from .trees import (
    ANSIBLE,
    CONFIG,
    DPKG_OPTIONS,
    OTHER,
    Fleet,
    Host,
    Outcome,
    bare_fleet,
    like,
    package,
)

UPGRADE = (
    *("Refuse a package without a version in its name", "Keep aside what is there", "Bring the package"),
    *("Install the package", "Write the configuration", "Restart the daemon", "Switch the service on"),
    *("Look at the daemon", "Judge what it said", "Compare the kernel with the journal"),
)
REMOVAL = (
    "Keep aside what is there",
    "Remove the package",
    "Remove what the role kept",
    "Look for a journal",
)
FIRST, LAST = "Note who is in this batch", "Forget what was there"
LATER = 2


def fail_each(fleet: Fleet, tasks: tuple[str, ...], **given: object) -> Outcome:
    """A first batch in which every host fails at another task, after this did its work; then come others."""
    canaries, others = fleet.names[:-LATER], fleet.names[-LATER:]
    fail = dict(zip(canaries, tasks, strict=True))
    before = fleet.content()
    outcome = fleet.roll_out(fail, dasec_batches=[len(canaries), "100%"], **given)
    assert outcome.status != 0
    for name, task in fail.items():
        reached = [each for host, each in outcome.tasks if host == name]
        assert f"fatal: [{name}]" in outcome.said
        assert reached[reached.index(task) + 1] == "Note what failed", (name, reached)
    assert fleet.content() == before
    assert {name for name, _ in outcome.tasks} & {*others} == set()
    return outcome


@pytest.mark.thorough
def test_an_upgrade_that_fails_at_each_of_its_tasks_leaves_every_host_as_before(
    host: Host, new: Path, tmp_path: Path
) -> None:
    fleet = like(host, tmp_path, len(UPGRADE) + LATER)
    outcome = fail_each(fleet, UPGRADE, dasec_package=new, dasec_config=OTHER)
    assert {fleet.host(name).runs() for name in fleet.names} == {f"1.0\n{CONFIG}"}
    starts = {task: fleet.host(name).starts() for name, task in zip(fleet.names, UPGRADE, strict=False)}
    assert starts.pop(UPGRADE[0]) == starts.pop(UPGRADE[1]) == 1, "nothing had changed there"
    assert min(starts.values()) > 1, "a daemon whose files were put back is started anew"
    last = [task for name, task in outcome.tasks if name == fleet.names[len(UPGRADE) - 1]]
    ours = {task for task in last if not task.startswith("Validating")} - {FIRST}
    assert ours - {*UPGRADE, *REMOVAL} == {"Note what failed", "Put back what was there", "End the roll-out"}


def test_a_removal_that_fails_at_each_of_its_tasks_leaves_every_host_as_before(
    host: Host, tmp_path: Path
) -> None:
    fleet = like(host, tmp_path, len(REMOVAL) + LATER)
    fail_each(fleet, REMOVAL, dasec_state="absent")
    assert {fleet.host(name).runs() for name in fleet.names} == {f"1.0\n{CONFIG}"}


@pytest.mark.thorough
def test_a_first_installation_that_fails_at_each_of_its_tasks_leaves_bare_hosts_bare(
    old: Path, tmp_path: Path
) -> None:
    fleet = bare_fleet(tmp_path, len(UPGRADE) + LATER)
    fail_each(fleet, UPGRADE, dasec_package=old, dasec_config=CONFIG)


@pytest.mark.thorough
def test_a_failure_before_the_first_task_and_after_the_watch_ends_the_roll_out_there(
    host: Host, new: Path, tmp_path: Path
) -> None:
    """The last task only forgets the way back: what has passed the watch stays."""
    for task, runs in ((FIRST, f"1.0\n{CONFIG}"), (LAST, f"2.0\n{OTHER}")):
        fleet = like(host, tmp_path / task.split()[0], 2)
        before = fleet.content()
        outcome = fleet.roll_out({"h1": task}, dasec_package=new, dasec_config=OTHER)
        assert outcome.status != 0
        assert [each for name, each in outcome.tasks if name == "h1"][-1] == task
        assert fleet.host("h1").runs() == runs
        assert (fleet.content()["h1"] == before["h1"]) == (task == FIRST)
        assert fleet.content()["h2"] == before["h2"]
        assert not [each for name, each in outcome.tasks if name == "h2"]


def test_a_removal_leaves_the_configuration_and_nothing_that_runs(host: Host, tmp_path: Path) -> None:
    fleet = like(host, tmp_path, 1)
    outcome = fleet.roll_out(dasec_state="absent")
    assert outcome.status == 0, outcome.said
    gone = fleet.host("h1")
    assert gone.package() == "config-files 1.0"
    left = {name for name, (_, text) in gone.content().items() if text and name}
    assert left == {"etc/hostname", "etc/dasec/dasec.toml", "etc/dasec/notes"}


@pytest.mark.thorough
def test_a_package_or_configuration_that_does_not_work_leaves_bare_hosts_bare(
    tmp_path: Path, well: dict[str, object]
) -> None:
    broken = package(tmp_path, "3.0", well, broken=True)
    unclean = package(tmp_path, "4.0", well, unclean=True)
    fleet = bare_fleet(tmp_path / "fleet")
    before = fleet.content()
    packages = {"h1": broken, "h2": unclean, "h3": unclean, "h4": unclean}
    told = {"h3": "nonsense\n"}
    outcome = fleet.roll_out(
        dasec_package_of={name: str(file) for name, file in packages.items()},
        dasec_config_of=told,
        dasec_package="{{ dasec_package_of[inventory_hostname] }}",
        dasec_config="{{ dasec_config_of[inventory_hostname] | default('') }}",
        dasec_batches=["100%"],
    )
    assert outcome.status != 0
    for name, task in {
        "h1": "Install the package",
        "h2": "Compare the kernel with the journal",
        "h3": "Restart the daemon",
        "h4": "Compare the kernel with the journal",
    }.items():
        reached = [each for host, each in outcome.tasks if host == name]
        assert reached[reached.index("Note what failed") - 1] == task, (name, outcome.said)
    assert fleet.content() == before


TROUBLES: dict[str, dict[str, object]] = {
    "h1": {},
    "h2": {"troubles": ["the journal is full"]},
    "h3": {"not_reloaded": ["dasec.toml: policy: unknown"]},
    "h4": {"violations": 2},
    "h5": {"own_cpu_percent": 5.1},
    "h6": {"own_cpu_percent": 4.9, "troubles": [f"the daemon takes 4.9 % of a core, {ABOVE_BUDGET} = 1: …"]},
    "h7": {
        "workloads": [
            {"guard": "threads that others wait for took 2.31 times as long: policy off here for 60 s"}
        ]
    },
}


def test_the_watch_is_content_with_a_well_daemon_and_with_no_other(
    host: Host, tmp_path: Path, well: dict[str, object]
) -> None:
    fleet = like(host, tmp_path, len(TROUBLES))
    for name, trouble in TROUBLES.items():
        assert set(trouble) <= set(well), "not what a real daemon says"
        (fleet.directory / name / "usr/lib/dasec/status.json").write_text(json.dumps({**well, **trouble}))
    playbook = tmp_path / "watch.yml"
    roles = [{"import_role": {"name": "dasec", "tasks_from": "watch.yml"}}]
    playbook.write_text(json.dumps([{"hosts": "dasec", "gather_facts": False, "tasks": roles}]))
    outcome = fleet.play(playbook, {}, {})
    content = {name for name in fleet.names if f"fatal: [{name}]" not in outcome.said}
    assert content == {"h1", "h6"}, outcome.said
    for said in (
        "the journal is full",
        "policy: unknown",
        "violations 2",
        "own CPU 5.1 % of 1.0 %",
        "2.31 times",
    ):
        assert said in outcome.said


def before(fleet: Fleet, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The role's own tool, as it is run on h1."""
    tool = ANSIBLE / "roles/dasec/files/before"
    command = [fleet.directory / "bin/h1", tool, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_what_a_run_that_was_cut_off_kept_is_what_the_next_one_goes_back_to(
    host: Host, tmp_path: Path
) -> None:
    fleet = like(host, tmp_path, 1)
    root = fleet.host("h1").root
    fleet.write_shells()
    untouched = fleet.content()
    assert before(fleet, "take", root, "2.0").stdout == "installed 1.0\n"
    (root / "etc/dasec/dasec.toml").write_text(OTHER)
    before(fleet, "take", root, "2.0")
    by_hand = [fleet.directory / "bin/h1", root / "var/lib/dasec-before/tool", "put-back", root]
    done = subprocess.run([*map(str, by_hand), *DPKG_OPTIONS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "put back\n"), done.stderr
    assert fleet.content() == untouched
    assert before(fleet, "put-back", root).stdout == ""


def test_a_removal_ends_an_installation_that_was_cut_off(tmp_path: Path, well: dict[str, object]) -> None:
    fleet = bare_fleet(tmp_path / "fleet", 1)
    root = fleet.host("h1").root
    fleet.write_shells()
    before(fleet, "take", root, "3.0")
    broken = package(tmp_path, "3.0", well, broken=True)
    install = ["dpkg", f"--root={root}/", *DPKG_OPTIONS, "--install", str(broken)]
    assert subprocess.run(install, capture_output=True, check=False).returncode != 0
    assert fleet.host("h1").package() == "half-configured 3.0"
    outcome = fleet.roll_out(dasec_state="absent")
    assert outcome.status == 0, outcome.said
    assert fleet.host("h1").package() == "config-files 3.0"


def test_nothing_is_begun_on_a_host_whose_package_could_not_be_put_back(host: Host, tmp_path: Path) -> None:
    fleet = like(host, tmp_path, 1)
    root = fleet.host("h1").root
    fleet.write_shells()
    (root / "var/cache/dasec.deb").unlink()
    untouched = fleet.content()
    done = before(fleet, "take", root, "2.0")
    assert done.returncode == 1
    assert "is not the package that is installed 1.0: put it there, or there is no way back" in done.stderr
    assert fleet.content() == untouched
    assert before(fleet, "take", root, "1.0").returncode == 0, (
        "that version is there already: nothing to go back from"
    )

"""A reloaded configuration takes the place of the old one whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dasec.config.config import Config, load
from dasec.log import Announcer
from dasec.model import Level
from dasec.policies import Parameters, policy_named
from dasec.service.live_config import Regime, refusals
from dasec.workloads.libvirt import libvirt
from dasec.workloads.libvirt.status_directory import StatusDirectory

ME = f"pids = [{os.getpid()}]"


@dataclass
class Told:
    """Keeps what it hears."""

    heard: list[str] = field(default_factory=list)
    answers: list[list[str]] = field(default_factory=list)

    def turn(self, policy: str, parameters: Parameters) -> None:
        self.heard.append(policy)

    def reloading(self) -> None:
        self.heard.append("reloading")

    def answer(self, refused: Sequence[str]) -> None:
        self.answers.append(list(refused))


class Scene:
    """A configuration file in force, and somebody who is told."""

    def __init__(self, folder: Path, text: str) -> None:
        self.file = folder / "dasec.toml"
        self.told = Told()
        self.write(text)
        self.regime = Regime(self.file, load(self.file), Level.FULL, Announcer())
        self.regime.turning = self.regime.asked = (self.told,)

    def write(self, text: str, *names: str) -> None:
        tables = [f'[[workload]]\nname = "{name}"\n{ME}\n' for name in names or ("a",)]
        self.file.write_text("\n".join([text, *tables]))

    def names(self) -> list[str]:
        return [entry.name for entry in self.regime.roster()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, 'policy = "critical"')


def test_workloads_are_others_from_the_next_look_on_and_the_policy_stays(scene: Scene) -> None:
    policy = scene.regime.policy
    assert scene.names() == ["a"]
    scene.write('policy = "critical"', "b", "c")
    assert scene.regime.reload() is policy
    assert scene.names() == ["b", "c"]
    assert scene.told.answers == [[]]


def test_whether_qemus_main_threads_are_managed_is_heard_at_a_reload(scene: Scene) -> None:
    before = scene.regime.roster()
    scene.write('policy = "critical"\n[libvirt]\nemulator = "follow"')
    scene.regime.reload()
    assert scene.told.answers == [[]]
    assert scene.regime.roster() is not before


def test_containers_that_may_opt_in_no_longer_are_let_go_at_a_reload(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 'policy = "critical"\n[containers]\nannotations = true')
    before = scene.regime.roster()
    scene.write('policy = "critical"')
    scene.regime.reload()
    assert scene.told.answers == [[]]
    assert scene.regime.roster() is not before


def test_a_libvirt_that_nobody_asks_for_any_more_is_not_said_to_be_seen_again(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "dasec")
    nowhere = StatusDirectory(str(tmp_path / "qemu"))
    monkeypatch.setattr(libvirt, "StatusDirectory", lambda directory: nowhere)  # noqa: ARG005
    scene.write('policy = "critical"\n[libvirt]\nmetadata = true')
    scene.regime.reload()
    scene.regime.roster()
    scene.write('policy = "critical"')
    scene.regime.reload()
    scene.regime.roster()
    said = [line for line in caplog.messages if line.startswith("libvirt: ")]
    assert "is not there" in said[0]
    assert said[1:] == ["libvirt: its domains are not asked for any more"]


def test_the_same_file_again_changes_nothing(scene: Scene) -> None:
    policy, roster = scene.regime.policy, scene.regime.roster()
    assert scene.regime.reload() is policy
    assert scene.regime.roster() is roster
    assert scene.told.heard == ["reloading"]


def test_another_policy_or_another_setting_of_it_is_a_new_one_and_is_told(scene: Scene) -> None:
    first = scene.regime.policy
    scene.write('policy = "none"')
    none = scene.regime.reload()
    assert (first.name, none.name, scene.told.heard) == ("critical", "none", ["reloading", "none"])
    scene.write('policy = "critical"\n[critical]\nweight_ratio = 3')
    assert scene.regime.reload() not in (first, none)


def test_a_setting_of_a_policy_that_does_not_decide_leaves_the_one_that_does(scene: Scene) -> None:
    policy = scene.regime.policy
    scene.write('policy = "critical"\n[rla]\nstep_percent = 20')
    assert scene.regime.reload() is policy


@pytest.mark.parametrize("text", ["cpus = 1\n", "[containers]\nannotations = true\nmost_cpus = 1\n"])
def test_another_reservation_is_another_policy(scene: Scene, text: str) -> None:
    policy = scene.regime.policy
    scene.file.write_text(scene.file.read_text() + text)
    assert scene.regime.reload() is not policy
    assert scene.told.answers == [[]]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("policy = 'x'\nperod_ms = 1", 2),
        ("= 3", 1),
        ("[bandwidth]\ncaps = true", 1),
        ("period_ms = 100\n[host]\ncpus = '0'\nown_cgroups = true\n[record]\nfiles = 9", 4),
    ],
)
def test_a_file_that_is_refused_leaves_everything_as_it_was_and_says_all_reasons(
    scene: Scene, text: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    policy = scene.regime.policy
    scene.write(text, "b")
    assert scene.regime.reload() is policy
    assert scene.names() == ["a"]
    assert len(scene.told.answers[0]) == count
    assert [line for line in caplog.messages if line.startswith("not reloaded: ")] == [
        f"not reloaded: {reason}" for reason in scene.told.answers[0]
    ]


def test_a_file_that_is_gone_is_one_reason_and_mending_it_is_enough(scene: Scene) -> None:
    scene.file.unlink()
    scene.regime.reload()
    scene.write('policy = "none"')
    scene.regime.reload()
    assert [len(answer) for answer in scene.told.answers] == [1, 0]


def test_what_a_host_does_not_count_is_not_switched_on_by_a_reload(scene: Scene) -> None:
    now = load(scene.file)
    scene.write('policy = "dasec"')
    paper = load(scene.file)
    assert list(refusals(now, paper, Level.FULL)) == []
    assert list(refusals(paper, now, Level.EDGES)) == [
        "policy: critical wants to know who wakes whom, which this daemon does not count, begun with another"
        " policy: restart the daemon, or put it back"
    ]


def test_a_fixed_setting_is_named_with_both_values(scene: Scene) -> None:
    now = load(scene.file)
    scene.write("[host]\ncpus = '0-1'")
    assert list(refusals(now, load(scene.file), Level.FULL)) == [
        'host.cpus: cannot change from its default to "0-1" while the daemon runs:'
        " restart the daemon, or put it back"
    ]


def test_a_reload_reads_the_file_as_the_start_did(tmp_path: Path) -> None:
    """As `dasec scx --partial` does, which goes by another policy and host than the file says."""
    scene = Scene(tmp_path, 'policy = "critical"')

    def read(file: Path) -> Config:
        told = load(file)
        host = told.host.model_copy(update={"vm_level": 3})
        return told.model_copy(update={"policy": "none", "host": host})

    regime = Regime(scene.file, read(scene.file), Level.NONE, Announcer(), read)
    regime.asked = (scene.told,)
    scene.write('policy = "static"', "a", "b")
    policy = regime.reload()
    assert scene.told.answers == [[]]
    assert policy is regime.policy
    assert isinstance(policy, type(policy_named("none", read(scene.file).parameters())))
    assert [entry.name for entry in regime.roster()] == ["a", "b"]
    regime.close()

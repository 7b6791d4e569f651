"""The playbook over four hosts: batches, a second run, a failure after the canary."""

from __future__ import annotations

from pathlib import Path

import pytest

from .trees import CONFIG, OTHER, Fleet, Host, bare_fleet, like


def keeps(fleet: Fleet) -> list[str]:
    """The hosts on which something of a roll-out that has not ended is left."""
    return [name for name in fleet.names if (fleet.directory / name / "var/lib/dasec-before").exists()]


@pytest.mark.thorough
def test_a_second_run_changes_nothing_and_restarts_nobody(host: Host, old: Path, tmp_path: Path) -> None:
    fleet = like(host, tmp_path, 4)
    before = fleet.content()
    outcome = fleet.roll_out(dasec_package=old, dasec_config=CONFIG)
    assert outcome.status == 0, outcome.said
    assert outcome.changed == dict.fromkeys(fleet.names, 0)
    assert fleet.content() == before
    assert [fleet.host(name).starts() for name in fleet.names] == [1, 1, 1, 1]
    watched = [name for name, task in outcome.tasks if task == "Compare the kernel with the journal"]
    assert watched == ["h1", "h2", "h3", "h4"]


@pytest.mark.thorough
def test_where_a_host_of_the_second_batch_fails_that_batch_is_put_back_and_the_third_is_not_touched(
    host: Host, new: Path, tmp_path: Path
) -> None:
    fleet = like(host, tmp_path, 4)
    before = fleet.content()
    outcome = fleet.roll_out({"h3": "Judge what it said"}, dasec_package=new, dasec_config=OTHER)
    after = fleet.content()
    assert outcome.status != 0
    assert "put back, because of h3" in outcome.said
    assert fleet.host("h1").runs() == f"2.0\n{OTHER}", "the canary had passed its watch"
    assert [fleet.host(name).runs() for name in ("h2", "h3")] == [f"1.0\n{CONFIG}"] * 2
    assert not [task for name, task in outcome.tasks if name == "h4"]
    assert {name: after[name] for name in ("h2", "h3", "h4")} == {
        name: before[name] for name in ("h2", "h3", "h4")
    }
    assert keeps(fleet) == []


@pytest.mark.slow
def test_a_bare_fleet_gets_it_batch_by_batch_and_every_daemon_is_started_once(
    old: Path, tmp_path: Path
) -> None:
    fleet = bare_fleet(tmp_path)
    outcome = fleet.roll_out(dasec_package=old, dasec_config=CONFIG)
    assert outcome.status == 0, outcome.said
    order = [
        (name, task) for name, task in outcome.tasks if task in ("Bring the package", "Forget what was there")
    ]
    assert [name for name, _ in order] == ["h1", "h1", "h2", "h3", "h2", "h3", "h4", "h4"]
    for name in fleet.names:
        host = fleet.host(name)
        assert (host.package(), host.runs(), host.starts()) == ("installed 1.0", f"1.0\n{CONFIG}", 1)
    assert keeps(fleet) == []


@pytest.mark.thorough
def test_where_a_host_cannot_be_reached_the_others_of_its_batch_are_put_back(
    tmp_path: Path, old: Path
) -> None:
    fleet = bare_fleet(tmp_path).losing(h2="Note who is in this batch")
    before = fleet.content()
    outcome = fleet.roll_out(dasec_package=old, dasec_config=CONFIG, dasec_batches=["100%"])
    assert outcome.status != 0
    assert "put back, because of h2" in outcome.said
    assert fleet.content() == before


def test_a_canary_that_is_lost_half_way_ends_the_roll_out(host: Host, new: Path, tmp_path: Path) -> None:
    fleet = like(host, tmp_path, 2)
    before = fleet.content()
    lost = fleet.losing(h1="Install the package")
    outcome = lost.roll_out(dasec_package=new, dasec_config=OTHER)
    assert outcome.status != 0
    assert [name for name in fleet.names if fleet.content()[name] == before[name]] == ["h2"]
    assert not [task for name, task in outcome.tasks if name == "h2"]


def test_a_daemon_that_a_lost_run_did_not_start_anew_is_started_anew_by_the_next_one(
    host: Host, old: Path, tmp_path: Path
) -> None:
    fleet = like(host, tmp_path, 1)
    given = {"dasec_package": old, "dasec_config": OTHER}
    assert fleet.losing(h1="Write the configuration").roll_out(**given).status != 0
    assert fleet.host("h1").runs() == f"1.0\n{CONFIG}", "it has not read the new one"
    outcome = fleet.roll_out(**given)
    assert outcome.status == 0, outcome.said
    assert fleet.host("h1").runs() == f"1.0\n{OTHER}"
    assert keeps(fleet) == []


@pytest.mark.slow
def test_hosts_that_are_lost_half_way_keep_the_way_back_and_a_failure_of_the_next_run_takes_it(
    host: Host, new: Path, tmp_path: Path
) -> None:
    fleet = like(host, tmp_path, 6)
    before = fleet.content()
    given = {"dasec_package": new, "dasec_config": OTHER, "dasec_batches": [5, 1]}
    lost = fleet.losing(
        h1="Keep aside what is there",
        h2="Install the package",
        h3="Compare the kernel with the journal",
    )
    outcome = lost.roll_out({"h4": "Judge what it said"}, **given)
    assert outcome.status != 0
    assert [name for name, task in outcome.tasks if task == "End the roll-out"] == ["h4", "h5"]
    assert [name for name in fleet.names if fleet.content()[name] == before[name]] == ["h4", "h5", "h6"]
    assert keeps(fleet) == ["h1", "h2", "h3"], "the last was lost when it was to be put back"
    assert [fleet.host(name).package()[-3:] for name in ("h1", "h2", "h3")] == ["1.0", "2.0", "2.0"]
    assert fleet.roll_out({"h4": "Judge what it said"}, **given).status != 0
    assert fleet.content() == before


@pytest.mark.slow
def test_where_the_way_back_fails_the_others_are_put_back_and_it_can_be_gone_again(
    host: Host, new: Path, tmp_path: Path
) -> None:
    """With what a person wrote on h2, but no daemon had read before the roll-out, none starts."""
    fleet = like(host, tmp_path, 3)
    before = fleet.content()
    config = fleet.host("h2").root / "etc/dasec/dasec.toml"
    config.write_text("nonsense\n")
    fail = {"h1": "Judge what it said"}
    given = {"dasec_package": new, "dasec_config": OTHER, "dasec_batches": ["100%"]}
    outcome = fleet.roll_out(fail, **given)
    assert outcome.status != 0
    shown = outcome.said.partition("Put back what was there]")[2]
    assert "fatal: [h2]" in shown
    assert "Job for dasec.service failed." in shown
    assert [name for name in fleet.names if fleet.content()[name] == before[name]] == ["h1", "h3"]
    assert (fleet.host("h2").package(), config.read_text()) == ("installed 1.0", "nonsense\n")
    assert keeps(fleet) == ["h2"]
    (fleet.host("h2").root / "var/lib/dasec-before/etc/dasec.toml").write_text(CONFIG)
    assert fleet.roll_out(fail, **given).status != 0
    assert fleet.content() == before

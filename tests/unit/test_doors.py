"""A policy comes in by one file and one line, a host by one folder and one row."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Annotated

import pytest

from dasec.config.config import check
from dasec.config.tables import section_of
from dasec.hosts.host import HostSettings
from dasec.hosts.open import AUTO, BACKENDS, probe
from dasec.policies import POLICIES, TABLES, Parameters
from dasec.policy import Settings
from dasec.safety.journal.dry_run import NoJournal
from dasec.settings import Help, Range, settings_of
from dasec.settings import check as check_ranges

WORKLOAD = '[[workload]]\nname = "a"\npids = [1]\n'


@dataclass(frozen=True, slots=True)
class LotteryParameters:
    """Settings as a policy of somebody's own would have them."""

    tickets: Annotated[int, Range(1, 9, "so many tickets, 1 to 9")] = 3
    draw_ns: Annotated[int, Range(1, 500, unit="ms")] = 80_000_000
    winners: Annotated[tuple[str, ...], Help('names such as ["web-*"]')] = ()
    fair: bool = True

    def __post_init__(self) -> None:
        check_ranges(self)


def test_a_table_of_the_configuration_is_made_from_a_class_of_settings() -> None:
    section = section_of(LotteryParameters)
    assert list(section.model_fields) == ["tickets", "draw_ms", "winners", "fair"]
    assert section().parameters() == LotteryParameters()
    told = section.model_validate_json('{"tickets": 9, "draw_ms": 20, "winners": ["a"], "fair": false}')
    assert told.parameters() == LotteryParameters(9, 20_000_000, ("a",), False)
    assert section.model_fields["tickets"].description == "so many tickets, 1 to 9"
    assert section.model_fields["draw_ms"].description == "from 1 to 500 ms"


@pytest.mark.parametrize("text", ['{"tickets": 10}', '{"draw_ms": 0}', '{"draw_ns": 5}', '{"fair": 1}'])
def test_what_is_out_of_its_range_or_not_known_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        section_of(LotteryParameters).model_validate_json(text)


def test_a_range_of_what_is_no_integer_is_a_mistake_of_the_policy() -> None:
    @dataclass(frozen=True, slots=True)
    class DrawParameters:
        chance: Annotated[float, Range(0, 1)] = 0.5

    with pytest.raises(TypeError, match="chance: a Range is of integers"):
        section_of(DrawParameters)


def test_a_class_of_settings_checks_itself() -> None:
    with pytest.raises(ValueError, match="lottery: tickets is 10: give 1 to 9"):
        LotteryParameters(tickets=10)
    with pytest.raises(ValueError, match="lottery: draw_ns is 0: give 1 or more"):
        LotteryParameters(draw_ns=0)


@pytest.mark.parametrize("name", TABLES)
def test_every_setting_of_every_policy_is_a_key_of_its_table(name: str) -> None:
    default = getattr(check(tomllib.loads(WORKLOAD), "c.toml"), name)
    keys = [field.key for field in settings_of(TABLES[name]).values()]
    assert list(type(default).model_fields) == keys
    assert default.parameters() == TABLES[name]()


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_made_from_settings_alone_and_has_its_name(name: str) -> None:
    assert POLICIES[name].build(Settings()).name == name
    chosen = check(tomllib.loads(f'policy = "{name}"\n[guard]\nenabled = false\n{WORKLOAD}'), "c.toml")
    assert chosen.parameters() == Parameters()


@pytest.mark.parametrize("name", [AUTO, *BACKENDS])
def test_every_kind_of_host_can_be_asked_for(name: str) -> None:
    told = check(tomllib.loads(f'[host]\nbackend = "{name}"\n{WORKLOAD}'), "c.toml")
    assert told.host.backend == name


def test_the_fake_host_is_opened_by_the_same_door() -> None:
    found = probe("fake")
    host = BACKENDS[found.backend].open(NoJournal(), found, HostSettings(dry_run=True))
    assert (host.capabilities.backend, host.notices(), host.observe([]).knobs) == ("fake", (), {})
    host.close()

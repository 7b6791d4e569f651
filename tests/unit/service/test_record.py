"""A record gives back what was put in, and nothing changed in it goes unseen."""

from __future__ import annotations

import json
import os
import random

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from dasec.budget import Outlay
from dasec.model import IDLE, Core, Decision, Topology
from dasec.policies import Parameters
from dasec.record.checksum import seal, unseal
from dasec.record.encode import Encoder
from dasec.record.entries import (
    SCHEMA,
    Decoder,
    Entry,
    Stages,
    decision_row,
    read_topology,
    result_row,
    topology_row,
)
from dasec.tsa import TsaParameters
from tests.builders import Group, Row, period
from tests.properties.strategies import uneven

from .periods import STATE, histories


def written(entries: list[Entry]) -> list[bytes]:
    encoder, header = Encoder.begin("none", Parameters(), STATE)
    return [header, *(encoder.line(entry) for entry in entries)]


def bodies(lines: list[bytes]) -> list[bytes]:
    found, chain = [], 0
    for line in lines:
        opened = unseal(line[:-1], chain)
        assert opened is not None
        body, chain = opened
        found.append(body)
    return found


@given(histories())
def test_every_period_is_rebuilt_exactly(entries: list[Entry]) -> None:
    decoder = Decoder()
    for entry, body in zip(entries, bodies(written(entries))[1:], strict=True):
        period, _ = decoder.period(body)
        assert period == entry.period


def test_qemus_main_thread_is_told_from_vcpus_and_costs_others_nothing() -> None:
    made = period(Group("vm", [Row(1), Row(1), Row(1, emulator=True)]), Group("web", [Row(1)]))
    entry = Entry(0, 0, made, Decision(state=STATE), (), (), Stages())
    (_, body) = bodies(written([entry]))
    vm, web = json.loads(body)["workloads"]
    assert vm["emulators"] == [2]
    assert "emulators" not in web
    assert Decoder().period(body)[0].workloads == made.workloads


@given(histories())
def test_usage_comes_back_in_the_order_of_the_workloads(entries: list[Entry]) -> None:
    decoder = Decoder()
    for entry, body in zip(entries, bodies(written(entries))[1:], strict=True):
        period, _ = decoder.period(body)
        assert list(period.usage) == list(entry.period.usage)
        assert list(period.knobs) == list(entry.period.knobs)


@given(histories())
def test_decision_and_results_are_the_same_bytes_when_made_again(entries: list[Entry]) -> None:
    decoder = Decoder()
    before = STATE
    for entry, body in zip(entries, bodies(written(entries))[1:], strict=True):
        _, line = decoder.period(body)
        assert to_json(line["decision"]) == to_json(decision_row(entry.decision, decoder.layout, before))
        made = [result_row(result, decoder.layout) for result in entry.results]
        assert to_json(line.get("results", [])) == to_json(made)
        before = entry.decision.state


@given(histories(), st.randoms(use_true_random=False))
def test_any_changed_byte_breaks_the_seal(entries: list[Entry], chance: random.Random) -> None:
    lines = written(entries)
    line = chance.choice(lines)
    at = chance.randrange(len(line) - 1)
    changed = line[:at] + bytes([line[at] ^ 1 << chance.randrange(8)]) + line[at + 1 :]
    number, chain = lines.index(line), 0
    for earlier in lines[:number]:
        opened = unseal(earlier[:-1], chain)
        assert opened is not None
        chain = opened[1]
    assert unseal(changed[:-1], chain) is None


@given(st.binary(min_size=2), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_line_unseals_only_after_the_line_that_came_before_it(body: bytes, chain: int, other: int) -> None:
    body = body[:-1] + b"}"
    line, _ = seal(body, chain)
    assert unseal(line[:-1], chain) == (body, seal(body, chain)[1])
    assert (unseal(line[:-1], other) is None) == (other != chain)


@given(histories())
def test_a_second_line_says_only_what_changed(entries: list[Entry]) -> None:
    entry = entries[0]
    _, _, again = bodies(written([entry, entry]))
    line = json.loads(again)
    assert not {"topology", "workloads", "knobs", "cores"} & line.keys()


@given(histories())
def test_sleepers_take_no_room(entries: list[Entry]) -> None:
    for entry, body in zip(entries, bodies(written(entries))[1:], strict=True):
        awake = [usage for usage in entry.period.usage.values() if usage is not IDLE]
        assert len(json.loads(body)["usage"]) == len(awake)


def test_the_header_names_schema_policy_parameters_and_state() -> None:
    _, header = Encoder.begin("dasec", Parameters((TsaParameters(step_percent=9),)), STATE)
    told = json.loads(header)
    assert told.pop("crc")
    parameters = told.pop("parameters")
    policies = {"tsa", "rla", "rcr", "critical", "oracle", "bvt", "parties"}
    assert parameters.keys() == policies | {"bandwidth", "guard", "reservations"}
    assert (parameters["tsa"]["step_percent"], parameters["guard"]) == (9, None)
    assert told == {"dasec_record": SCHEMA, "policy": "dasec", "state": {}}
    assert os.linesep.encode() not in header[:-1]


@given(uneven(Topology(tuple(map(Core, range(4))), dict.fromkeys(map(Core, range(4)), 0))))
def test_small_cores_and_siblings_come_back_and_an_older_record_has_none(topology: Topology) -> None:
    row = json.loads(json.dumps(topology_row(topology)))
    assert read_topology(row) == topology
    even = read_topology({"cores": row["cores"], "nodes": row["nodes"]})
    assert (even.capacity_of, even.whole_of) == ({}, {})


def test_who_woke_others_comes_back_and_an_older_record_does_not_know() -> None:
    made = period(Group("vm", [Row(5, wakeups=3, external=1, chain_ms=2, outward=4)]))
    _, line = written([Entry(1, 0, made, Decision(), (), (), Stages(), Outlay())])
    told = json.loads(line)
    assert Decoder().period(line)[0].usage == made.usage
    assert told["usage"][0].pop() == 4
    older = Decoder().period(json.dumps(told).encode())[0].usage
    assert [used.outward for used in older.values()] == [None]
    assert [used.wakeups for used in older.values()] == [3]

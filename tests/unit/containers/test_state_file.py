"""What a runtime's file says, whatever is in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.config.config import ENGINES as CONFIGURED
from dasec.workloads.containers.engines import ENGINES
from dasec.workloads.containers.state_file import (
    STATE,
    STATUS,
    ContainerClaim,
    NotAState,
    annotations_of,
    parse,
)
from dasec.workloads.containers.systems import ENGINES as SYSTEMS

RUNC = {
    "init_process_pid": 6180,
    "init_process_start": 1893458,
    "cgroup_paths": {"": "/sys/fs/cgroup/unified/docker/abc", "cpu": "/sys/fs/cgroup/cpu/docker/abc"},
    "config": {"labels": ["io.kubernetes.cri.sandbox-name=web=7f9", "bundle=/x"]},
}
CRUN = {
    "pid": 77,
    "process-start-time": 99,
    "cgroup-path": "/machine.slice/libpod-abc.scope/container",
    "bundle": "/b",
}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from([*RUNC, *CRUN])


def test_runc_names_process_start_groups_and_annotations() -> None:
    claim = parse(STATE, json.dumps(RUNC).encode())
    assert (claim.pid, claim.start_ticks) == (6180, 1893458)
    assert claim.groups == ("/sys/fs/cgroup/cpu/docker/abc", "/sys/fs/cgroup/unified/docker/abc")
    assert claim.annotations["io.kubernetes.cri.sandbox-name"] == "web=7f9"


def test_crun_keeps_annotations_in_the_bundle() -> None:
    claim = parse(STATUS, json.dumps(CRUN).encode())
    assert claim == ContainerClaim(77, 99, ("/machine.slice/libpod-abc.scope/container",), {}, "/b")
    assert annotations_of(b'{"annotations": {"a": "b", "c": 1}}') == {"a": "b"}


@given(
    st.sampled_from([STATE, STATUS]),
    st.binary() | st.dictionaries(keys, values).map(json.dumps).map(str.encode),
)
def test_whatever_is_in_a_file_it_is_a_claim_or_refused_in_words(file: str, content: bytes) -> None:
    try:
        claim = parse(file, content)
    except NotAState:
        return
    assert claim.pid > 0
    assert all(group.startswith("/") for group in claim.groups)


def test_what_is_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(NotAState, match="is no JSON"):
        parse(STATE, b"[" * 100_000)
    assert annotations_of(b"[" * 100_000) == {}


@pytest.mark.parametrize("key", ["init_process_pid", "init_process_start", "cgroup_paths"])
def test_a_file_that_lacks_what_identifies_is_refused(key: str) -> None:
    with pytest.raises(NotAState):
        parse(STATE, json.dumps({name: value for name, value in RUNC.items() if name != key}).encode())


def test_the_configuration_knows_the_engines_that_are_found() -> None:
    assert (*ENGINES, *SYSTEMS) == CONFIGURED

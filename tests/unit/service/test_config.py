"""A configuration is good, or everything that is wrong with it is said at once, each with its place."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from dasec.config.config import ConfigError, check
from dasec.critical import CriticalParameters, Fairness
from dasec.guard import GuardParameters
from dasec.policies import Parameters
from dasec.rcr import RcrParameters
from dasec.reservations.grants import CpuClass, Principle
from dasec.reservations.parameters import Booking, ReservationParameters
from dasec.rla import RlaParameters
from dasec.tsa import TsaParameters

WORKLOAD = '[[workload]]\nname = "a"\npids = [1]\n'
FOLLOW = '[libvirt]\nemulator = "follow"'


def said(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        check(tomllib.loads(text), "c.toml")
    return caught.value.lines


def test_the_least_configuration_has_the_papers_defaults() -> None:
    config = check(tomllib.loads(WORKLOAD), "c.toml")
    assert (config.period_ms, config.policy, config.dry_run) == (80, "critical", False)
    assert config.parameters() == Parameters(guard=GuardParameters())


def test_every_key_can_be_given() -> None:
    config = check(
        tomllib.loads(
            """
            period_ms = 40
            policy = "static"
            dry_run = true
            [host]
            backend = "fake"
            cpus = "0-3,8"
            own_cgroups = true
            on_foreign_write = "reapply"
            [record]
            max_mib = 1
            files = 1
            [tsa]
            enabled = false
            step_percent = 5
            weight_span = 4
            tick_us = 1000
            [rla]
            floor_us = 1000
            ceiling_us = 5000
            start_us = 2000
            respect_burst = false
            [critical]
            weight_ratio = 5
            nested_weight_ratio = 9
            decay_percent = 80
            burst_us = 3000
            deadband_percent = 10
            guess = true
            yield_latency_percent = 150
            fairness = "demand"
            [guard]
            enabled = true
            harm_percent = 20
            backoff_s = 10
            recheck_s = 8
            [rcr]
            enabled = false
            conflict_ratio = 3
            across_nodes = true
            [[workload]]
            name = "a"
            share = 512
            match = { comm = "memcached" }
            [[workload]]
            name = "b"
            cgroup = "/machine.slice/b.scope"
            """
        ),
        "c.toml",
    )
    parameters = config.parameters()
    assert parameters.of(TsaParameters).tick_ns == 1_000_000
    assert parameters.of(RlaParameters).start_ns == 2_000_000
    assert parameters.of(RcrParameters).across_nodes
    assert parameters.of(CriticalParameters) == CriticalParameters(
        5, 9, 80, 3_000_000, 10, True, 150, Fairness.DEMAND
    )
    assert parameters.guard == GuardParameters(20, 250, 200, 40_000_000)
    assert [workload.name for workload in config.workload] == ["a", "b"]


def test_domains_that_opt_in_by_themselves_are_enough() -> None:
    config = check(tomllib.loads("[libvirt]\nmetadata = true\n"), "c.toml")
    assert config.libvirt.metadata
    assert config.workload == ()


def test_qemus_main_threads_are_managed_only_where_somebody_says_so() -> None:
    told = {each: check(tomllib.loads(f"{each}\n{WORKLOAD}"), "c.toml") for each in ("", FOLLOW)}
    assert [config.libvirt.emulator for config in told.values()] == ["never", "follow"]


def test_the_guard_is_on_and_can_be_switched_off() -> None:
    on = check(tomllib.loads(WORKLOAD), "c.toml")
    assert on.parameters() == Parameters(guard=GuardParameters())
    off = check(tomllib.loads("[guard]\nenabled = false\n" + WORKLOAD), "c.toml")
    assert off.parameters() == Parameters()


def test_a_time_of_the_guard_is_as_long_with_another_period() -> None:
    config = check(tomllib.loads("period_ms = 40\n[guard]\nbackoff_s = 20\n" + WORKLOAD), "c.toml")
    assert config.parameters().guard == GuardParameters(
        backoff_periods=500, recheck_periods=1500, period_ns=40_000_000
    )


def test_what_was_read_cannot_be_changed() -> None:
    config = check(tomllib.loads(WORKLOAD), "c.toml")
    with pytest.raises(ValidationError):
        setattr(config, "period_ms", 10)  # noqa: B010  # mypy refuses the plain form, which is the point


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("perod_ms = 80\n" + WORKLOAD, "perod_ms: unknown key: did you mean `period_ms`?"),
        (WORKLOAD + "shares = 3\n", "workload[0].shares: unknown key: did you mean `share`?"),
        ("[host]\ncpu = '0'\n" + WORKLOAD, "host.cpu: unknown key: did you mean `cpus`?"),
        (
            "[host]\nxyzzy = 1\n" + WORKLOAD,
            "host.xyzzy: unknown key: known here: backend, bpf, cpus, keeper_cgroup,"
            " max_threads_per_workload, nice, on_foreign_write, own_cgroups",
        ),
        (
            "[[workload]]\nname = 'a'\nmatch = { com = 'x' }\n",
            "workload[0].match.com: unknown key: did you mean `comm`?",
        ),
        ("period_ms = 5\n" + WORKLOAD, "period_ms: is 5, which is wrong: "),
        ("period_ms = '80'\n" + WORKLOAD, 'period_ms: is "80", which is wrong: '),
        ("period_ms = true\n" + WORKLOAD, "period_ms: is true, which is wrong: "),
        ("period_ms = 80.5\n" + WORKLOAD, "period_ms: is 80.5, which is wrong: "),
        ("dry_run = 1\n" + WORKLOAD, "dry_run: is 1, which is wrong: "),
        (
            "policy = 'dasek'\n" + WORKLOAD,
            "policy: no policy named 'dasek' in this build: did you mean `dasec`?",
        ),
        (
            "policy = 'lottery'\n" + WORKLOAD,
            "policy: no policy named 'lottery' in this build: known here: bvt, critical, dasec, none, ",
        ),
        (
            "[host]\nbackend = 'patched'\n" + WORKLOAD,
            "host.backend: no backend named 'patched' in this build: did you mean `patched_cfs`?",
        ),
        (
            "[host]\npartial = true\n" + WORKLOAD,
            'host: `partial` goes with backend = "sched_ext" only, not "auto"',
        ),
        (
            "[host]\nvm_level = 3\nbackend = 'mainline'\n" + WORKLOAD,
            'host: `vm_level` goes with backend = "sched_ext" only, not "mainline"',
        ),
        (
            "[containers]\nmost_cpus = 1\n" + WORKLOAD,
            "containers: `most_cpus` goes with annotations = true only",
        ),
        (
            "[[workload]]\nname = 'a'\npids = [7, 1, 7]\n",
            "workload[0].pids: has 7 more than once: give a list of process ids",
        ),
        ("[host]\ncpus = '0-'\n" + WORKLOAD, "host.cpus: '0-' is neither a CPU number nor a range"),
        ("[host]\ncpus = ''\n" + WORKLOAD, "host.cpus: names no CPU: give a list of CPUs"),
        ("[host]\ncpus = '3-1'\n" + WORKLOAD, "host.cpus: '3-1' is not a range of CPUs: give a list"),
        ("[host]\ncpus = '0-99999999'\n" + WORKLOAD, "host.cpus: '0-99999999' is not a range of CPUs"),
        ("host = 3\n" + WORKLOAD, "host: is 3, not a table: write [host] and its keys"),
        ("[tsa]\nweight_span = 9\n" + WORKLOAD, "tsa.weight_span: is 9, which is wrong: "),
        ("[rla]\nfloor_us = 9000\n" + WORKLOAD, "rla: start_us 4000 is not between floor_us 9000"),
        ("[rcr]\nmin_gain_percent = 101\n" + WORKLOAD, "rcr.min_gain_percent: is 101, which is wrong: "),
        ("[critical]\nweight_ratio = 33\n" + WORKLOAD, "critical.weight_ratio: is 33, which is wrong: "),
        ("[guard]\nharm_percent = 0\n" + WORKLOAD, "guard.harm_percent: is 0, which is wrong: "),
        ("[guard]\nbackoff_s = 0\n" + WORKLOAD, "guard.backoff_s: is 0, which is wrong: "),
        (WORKLOAD + "cpu = 'whole'\n", "workload[0].cpu: says for whom, not how much: give `cpus`, such as"),
        (WORKLOAD + "cpu = 'own'\ncpus = 1\n", 'workload[0].cpu: is "own", which is wrong: '),
        (WORKLOAD + "cpus = 0\n", "workload[0].cpus: is 0, which is wrong: "),
        ("[reservations]\nprinciple = 'soft'\n" + WORKLOAD, 'reservations.principle: is "soft", which is'),
        ("", "workload: is missing: give at least one [[workload]]"),
        ("workload = []\n", "workload: is missing: give at least one [[workload]]"),
        ("[libvirt]\nmetadata = false\n", "workload: is missing: give at least one [[workload]]"),
        ("[libvirt]\nmetadata = 1\n" + WORKLOAD, "libvirt.metadata: is 1, which is wrong: "),
        (
            "[libvirt]\nemulator = 'always'\n" + WORKLOAD,
            "libvirt.emulator: is \"always\", which is wrong: input should be 'never' or 'follow': give",
        ),
        ("[libvirt]\nemulator = true\n" + WORKLOAD, "libvirt.emulator: is true, which is wrong: "),
        ("workload = 'all'\n", 'workload: is "all", which is wrong: '),
        ("[[workload]]\npids = [1]\n", "workload[0].name: is missing: give a name"),
        ("[[workload]]\nname = ''\npids = [1]\n", 'workload[0].name: is "", which is wrong: '),
        (
            "[[workload]]\nname = 'a'\n",
            "workload[0]: selects nothing: give one of `pids`, `cgroup`, `match`, `libvirt` or `container`",
        ),
        (WORKLOAD + "cgroup = '/x'\n", "workload[0]: has 2 selectors: pids, cgroup: keep one of them"),
        (WORKLOAD + "share = 1\n", "workload[0].share: is 1, which is wrong: "),
        (WORKLOAD + WORKLOAD, "workload[0].name: 'a' is taken more than once: give another name"),
        ("[[workload]]\nname = 'a'\npids = []\n", "workload[0].pids: is [], which is wrong: "),
        ("[[workload]]\nname = 'a'\npids = [0]\n", "workload[0].pids[0]: is 0, which is wrong: "),
        ("[[workload]]\nname = 'a'\npids = ['1']\n", 'workload[0].pids[0]: is "1", which is wrong: '),
        ("[[workload]]\nname = 'a'\ncgroup = 'x'\n", "workload[0].cgroup: 'x' is not a path from the "),
        ("[[workload]]\nname = 'a'\ncgroup = '/a/../b'\n", "workload[0].cgroup: '/a/../b' is not a path "),
        (
            "[[workload]]\nname = 'a'\nmatch = { comm = 'longer-than-the-kernel-keeps' }\n",
            'workload[0].match.comm: is "longer-than-the-kernel-keeps", which is wrong: ',
        ),
        (
            "[[workload]]\nname = 'a'\nmatch = { comm = 'ääääääää' }\n",
            "workload[0].match.comm: 'ääääääää' has more than 15 bytes, which is all that the kernel keeps: ",
        ),
        (
            "[[workload]]\nname = 'a'\ncontainer = 'k8s:default/web'\n",
            "workload[0].container: 'k8s:default/web' is not k8s:NAMESPACE/POD/CONTAINER: ",
        ),
        ("[[workload]]\nname = 'a'\nlibvirt = ''\n", 'workload[0].libvirt: is "", which is wrong: '),
    ],
)
def test_a_mistake_is_one_line_with_its_place_and_how_to_mend_it(text: str, line: str) -> None:
    lines = said(text)
    assert any(each.startswith(f"c.toml: {line}") for each in lines), lines
    assert not any("\n" in each for each in lines)


@pytest.mark.parametrize(
    ("text", "place", "key"),
    [
        ("[[workloads]]\nname = 'a'\npids = [1]\n", "workloads", "workload"),
        ("[[workload]]\nname = 'a'\npidz = [1]\n", "workload[0].pidz", "pids"),
        ("[[workload]]\nnme = 'a'\npids = [1]\n", "workload[0].nme", "name"),
        ("[[workload]]\nname = 'a'\nmatch = { com = 'a' }\n", "workload[0].match.com", "comm"),
        (WORKLOAD + "cpu = 'whole'\ncpuss = 1\n", "workload[0].cpuss", "cpus"),
        ("[libvirt]\nmeta_data = true\n", "libvirt.meta_data", "metadata"),
        ("[libvrt]\nmetadata = true\n", "libvrt", "libvirt"),
        ("[containers]\nannotation = true\n", "containers.annotation", "annotations"),
    ],
)
def test_a_misspelt_key_is_one_line(text: str, place: str, key: str) -> None:
    assert said(text) == [f"c.toml: {place}: unknown key: did you mean `{key}`?"]


def test_a_wrong_consent_is_one_line() -> None:
    (line,) = said("[libvirt]\nmetadata = 'true'\n")
    assert line.startswith("c.toml: libvirt.metadata: ")


def test_a_misspelt_key_that_may_be_missing_changes_nothing_else() -> None:
    assert len(said("[[workload]]\nname = 'a'\nshares = [1]\n")) == 2


def test_all_mistakes_are_said_at_once() -> None:
    lines = said(
        """
        period_ms = 1
        polici = "none"
        [host]
        cpus = "x"
        [guard]
        enabled = 1
        [[workload]]
        name = "a"
        share = 0
        pids = [1]
        cgroup = "/x"
        [[workload]]
        name = "a"
        """
    )
    places = [line.split(": ")[1] for line in lines]
    assert sorted(places) == sorted(
        [
            "guard.enabled",
            "period_ms",
            "polici",
            "host.cpus",
            "workload[0]",
            "workload[0].name",
            "workload[0].share",
            "workload[1]",
            "workload[1].name",
        ]
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("guard = false\n", "guard: is false, not a table: write [guard] and its keys below it"),
        (
            "policy = 3\n",
            "policy: is 3, which is wrong: it is no text in quotes:"
            ' give the name of a policy such as "critical"',
        ),
        (
            "[libvirt]\nmetadata = 1\n",
            "libvirt.metadata: is 1, which is wrong: input should be a valid boolean: give true or false",
        ),
        (
            '[critical]\nfairness = "x"\n',
            """critical.fairness: is "x", which is wrong: input should be 'strict', 'giving' or 'demand':"""
            """ give "strict", "giving" or "demand\"""",
        ),
    ],
)
def test_what_is_of_another_kind_is_said_in_the_files_words(text: str, line: str) -> None:
    (told,) = said(text + WORKLOAD)
    assert told.endswith(line)


def test_a_number_out_of_range_comes_with_the_range() -> None:
    (line,) = said(WORKLOAD + "share = 1\n")
    assert line.endswith("give an integer from 2 to 262144")


def test_what_is_reserved_is_told_by_what_discovery_calls_workloads() -> None:
    config = check(
        tomllib.loads(
            """
            [[workload]]
            name = "a*"
            pids = [1]
            cpus = 1.5
            [[workload]]
            name = "db"
            libvirt = "db-*"
            cpu = "whole"
            cpus = 2
            [[workload]]
            name = "shop"
            container = "docker:shop-?"
            cpu = "exclusive"
            cpus = 0.0004e4
            [[workload]]
            name = "other"
            pids = [2]
            [reservations]
            principle = "best-effort"
            apart = true
            """
        ),
        "c.toml",
    )
    assert config.parameters().reservations == ReservationParameters(
        (
            Booking("a[*]", 1500, CpuClass.SHARED),
            Booking("db/db-*", 2000, CpuClass.WHOLE),
            Booking("docker:shop-?", 4000, CpuClass.EXCLUSIVE),
        ),
        Principle.BEST_EFFORT,
        apart=True,
    )

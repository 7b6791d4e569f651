"""The experiments with guests of our own, without guests: what is sent, told, compared."""

from __future__ import annotations

import socket
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.config.config import check
from dasec.errors import Refusal
from dasec.lab.demo.lines import Answer, Line
from dasec.lab.kit.arms import CONTROL, NONE
from experiments.plan.blocks import Block
from experiments.plan.file import told_in, validated
from experiments.plan.oracle import ORACLE
from experiments.results.store import Store
from experiments.run.family import Ways
from experiments.studies.bare import guests as family
from experiments.studies.bare.edges import agreement, counted, total
from experiments.studies.bare.guests import busiest_first, kept
from experiments.studies.bare.load import KEYS, Orders, arrivals_ns, drive
from experiments.studies.bare.published import FOLDERS, latency, situations, worth
from experiments.studies.bare.situation import Guests, Mix, Situation
from experiments.studies.bare.wish import CRITICAL, Wish, groups, told
from guests.bare import words
from guests.bare.client import MOST_BYTES, VcpuStatistics
from guests.bare.words import Accelerator

COUNTS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 1000), min_size=1, max_size=8
)
WISH = Wish(repetitions=6, seconds=4, warmup_s=2, seed=1)
NAMES = ("bare-1", "bare-2", "bare-3")
ORDERS = Orders((), (), rate_per_s=200, serial_us=1, helper_us=1, warmup_s=0.2, seconds=0.3)


@contextmanager
def port(*, answers: bool) -> Iterator[int]:
    """A guest as its client sees it: requests come back as they were, or not at all."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))
        stopped = threading.Event()
        here.settimeout(0.02)

        def serve() -> None:
            while not stopped.is_set():
                try:
                    data, sender = here.recvfrom(MOST_BYTES)
                except TimeoutError:
                    continue
                if answers:
                    here.sendto(data, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield here.getsockname()[1]
        finally:
            stopped.set()
            thread.join()


STUDY = Path(__file__).parents[3] / "experiments/studies/bare"
KEPT = tuple(situations())
GIVING = 'critical:fairness="giving"'
IN_FINDINGS = CRITICAL, GIVING, ORACLE, "dasec"


def test_the_kept_runs_give_the_published_tables() -> None:
    page = (STUDY / "README.md").read_text(encoding="utf-8")
    assert f"\n\n{latency(KEPT)}\n\n" in page
    assert f"\n\n{worth(KEPT)}\n\n" in page


def test_where_background_rests_critical_has_the_oracles_gain_on_real_vcpus() -> None:
    unresting, alone, *consolidated = ({line.policy: line for line in lines} for lines in KEPT)
    assert len(consolidated) == 3
    for by_arm in consolidated:
        assert (by_arm[CRITICAL].answer, by_arm["dasec"].answer) == (Answer.GAIN, Answer.HARM)
        for ours, most in zip(by_arm[CRITICAL].effect, by_arm[ORACLE].effect, strict=True):
            assert ours.ratio < most.ratio + 0.05
        assert by_arm[CRITICAL].background > 0.965
    assert {alone[arm].answer for arm in (CRITICAL, GIVING, ORACLE)} == {Answer.NOTHING}
    assert [unresting[arm].answer for arm in (CRITICAL, GIVING, ORACLE)] == [
        Answer.NOTHING,
        Answer.GAIN,
        Answer.GAIN,
    ]
    assert unresting["dasec"].policy_ms[0] > 2000


def test_the_client_is_late_as_often_as_the_page_says() -> None:
    runs = [(one.cell, run) for folder in FOLDERS for one in Store(folder, Wish).done() for run in one.runs]

    def late_percent(cell: str, *arms: str) -> float:
        sent = [each for name, run in runs if cell in name and run.arm in arms for each in run.tenants]
        return 100 * sum(one.late_sends for one in sent) / sum(one.latencies.count for one in sent)

    cells = "rests of 6", "rests of 30", "rests of 12", "3 guests, kvm"
    plain = [late_percent(cell, NONE, CONTROL) for cell in cells]
    assert plain == pytest.approx([3.1, 1.5, 1.9, 0.1], abs=0.05)
    assert [late_percent(cell, CRITICAL) for cell in cells] == pytest.approx([1.2, 0.9, 1.1, 0.3], abs=0.05)


def test_the_papers_rules_write_as_much_as_the_page_says() -> None:
    done = [one for one in Store(FOLDERS[1], Wish).done() if "rests of 12" in one.cell]
    applied = {arm: sorted(one.of(arm).decided["applied"] for one in done) for arm in ("dasec", CRITICAL)}
    assert (applied["dasec"][0], applied["dasec"][-1]) == (960, 1298)
    assert applied[CRITICAL] == [6] * 9 + [12]


def test_the_first_page_has_gains_no_effect_and_harm_of_all_these_situations() -> None:
    page = (STUDY.parents[2] / "README.md").read_text(encoding="utf-8")
    by_arm = [{line.policy: line for line in lines} for lines in KEPT]
    resting = [one for one in by_arm if "rests of" in one[CRITICAL].situation]
    unresting = [one for one in by_arm if one not in resting]
    bounded = [one["dasec"] for one in by_arm if one["dasec"].policy_ms[0] < 2000]
    for word, guests, lines in (
        ("**gain**", "KVM guests, two cores", [one[CRITICAL] for one in resting]),
        ("nothing", "KVM guests, background never rests", [one[CRITICAL] for one in unresting]),
        ("**harm**", "the paper's rules, KVM guests", bounded),
    ):
        mean, p99 = (
            f"{min(ratios):.2f}–{max(ratios):.2f}"
            for ratios in zip(*([one.ratio for one in line.effect] for line in lines), strict=True)
        )
        assert f"| {word} | {guests} | {mean} | {p99} | [bare guests]" in page


def test_the_findings_have_the_ratios_of_the_kept_runs_in_their_rows() -> None:
    page = (STUDY.parents[2] / "docs/findings.md").read_text(encoding="utf-8")
    section = page.partition("## Real KVM vCPUs")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ") and ":" in row]
    for row, lines in zip(rows, (*KEPT[1:], KEPT[0]), strict=True):
        by_arm = {line.policy: line for line in lines}
        said = [f"{by_arm[arm].answer}: {both(by_arm[arm])}" for arm in IN_FINDINGS]
        assert row.endswith(f" | {lines[0].busy:.0%} | {' | '.join(said)} |".replace("%", " %"))


def both(line: Line) -> str:
    return ", ".join(f"{one.ratio:.2f}".removeprefix("0") for one in line.effect)


def expected(seed: int) -> int:
    """Requests of the measured part."""
    total_s = ORDERS.warmup_s + ORDERS.seconds
    return sum(at >= ORDERS.warmup_s * 1e9 for at in arrivals_ns(ORDERS.rate_per_s, total_s, seed))


@pytest.mark.parametrize("mix", [None, Mix()])
def test_each_request_of_the_measured_part_is_counted_once_answered_or_not(mix: Mix | None) -> None:
    with port(answers=True) as good, port(answers=False) as silent:
        orders = replace(ORDERS, ports=(good, silent), seeds=(1, 2), memcached=mix)
        served, lost = drive(orders, drain_s=0.2)
    assert (len(served.latencies_ns), served.unfinished) == (expected(1), 0)
    assert lost.unfinished == expected(2)
    assert lost.latencies_ns == [200_000_000] * expected(2)


@given(st.integers(0, 200_000), st.integers(0, 60_000))
def test_a_number_of_two_bytes_is_that_of_the_command_sent_last_with_it(number: int, since: int) -> None:
    orders = replace(ORDERS, memcached=Mix())
    assert orders.number_of(orders.packer(1)(number), number + since) == number


@given(st.integers(0, 1000))
def test_memcached_is_asked_for_the_ratio_and_the_values_that_were_wished(seed: int) -> None:
    packed = replace(ORDERS, memcached=Mix(value_bytes=7, get_ratio=0.75)).packer(seed)
    sent = [packed(number)[8:] for number in range(400)]
    gets = [one for one in sent if one.startswith(b"get ")]
    assert 250 < len(gets) < 350
    assert {one.split()[1].decode() for one in sent} <= set(KEYS)
    assert all(one.endswith(b" 0 0 7\r\n" + bytes(7) + b"\r\n") for one in sent if one not in gets)


@given(st.integers(0, 1000))
def test_arrivals_are_in_order_and_the_same_for_the_same_seed(seed: int) -> None:
    times = list(arrivals_ns(200, 2, seed))
    assert times == sorted(times) == list(arrivals_ns(200, 2, seed))
    assert all(0 <= at < 2e9 for at in times)


@pytest.mark.parametrize("arm", ["critical", "oracle", 'critical:fairness="giving"'])
@pytest.mark.parametrize("accelerator", ["kvm", "tcg"])
def test_the_daemon_is_told_what_it_takes(arm: str, accelerator: str) -> None:
    config = tomllib.loads(told(arm, accelerator, {"bare-1": 11, "bare-2": 22, "bare-3": 33}))
    check(config, arm)
    assert [one["pids"] for one in config["workload"]] == [[11], [22], [33]]
    assert config["guard"] == {"enabled": False}
    names = config.get("oracle", {}).get("critical", [])
    assert f"CPU 3/{accelerator.upper()}" not in names
    assert (f"CPU 0/{accelerator.upper()}" in names) == (arm == ORACLE)


def test_domains_are_told_by_their_names() -> None:
    config = tomllib.loads(told("critical", "kvm", "dasec-1-*"))
    check(config, "critical")
    assert config["workload"] == [{"name": "vms", "libvirt": "dasec-1-*"}]
    assert "host" not in config
    assert "libvirt" not in config


@pytest.mark.parametrize("arm", ["critical", "oracle", 'critical:fairness="giving"'])
def test_with_domains_qemus_main_threads_may_be_asked_for(arm: str) -> None:
    config = tomllib.loads(told(arm, "kvm", "dasec-1-*", "follow"))
    assert check(config, arm).libvirt.emulator == "follow"
    assert config["workload"] == [{"name": "vms", "libvirt": "dasec-1-*"}]


def test_qemus_main_threads_are_asked_for_of_domains_only(tmp_path: Path) -> None:
    file = tmp_path / "quick.toml"
    asked = {"bare": True, "libvirt": True, "emulator": "follow"}
    assert validated(Wish, asked, file).emulator == "follow"
    with pytest.raises(Refusal, match="emulator: is about domains: set libvirt = true, too"):
        validated(Wish, asked | {"libvirt": False}, file)
    with pytest.raises(Refusal, match="emulator: "):
        validated(Wish, asked | {"emulator": "always"}, file)


def test_every_repetition_has_each_arm_once_and_all_fit_into_five_minutes() -> None:
    blocks = WISH.blocks("kvm")
    assert all(sorted(block.arms) == sorted(WISH.arms) for block in blocks)
    assert [block.repetition for block in blocks] == list(range(WISH.repetitions))
    assert len({block.arms for block in blocks}) > 1
    assert WISH.run_s * len(WISH.arms) * WISH.repetitions < 300


def test_each_situation_is_measured_in_every_repetition(tmp_path: Path) -> None:
    asked = {
        "bare": True,
        "guests": [{"number": 1}, {"gap_us": 10_000}, {"gap_us": 10_000, "rate_per_s": 50}],
    }
    wish = validated(Wish, asked, tmp_path / "ratios.toml")
    names = [
        "1 guest, kvm",
        "3 guests, bursts of 10 ms, rests of 10, kvm",
        "3 guests, bursts of 10 ms, rests of 10, 50 requests/s, kvm",
    ]
    assert [one.name for one in wish.situations("kvm")] == names
    blocks = wish.blocks("kvm")
    assert sorted(block.key for block in blocks) == sorted(
        (name, number) for name in names for number in range(6)
    )
    assert [one.guests.names for one in wish.situations("kvm")] == [("bare-1",), NAMES, NAMES]


def test_one_situation_is_not_asked_for_twice(tmp_path: Path) -> None:
    same = {"bare": True, "guests": [{"number": 2}, {"number": 2, "gap_us": 0}]}
    with pytest.raises(Refusal, match="2 guests: there twice: leave one out"):
        validated(Wish, same, tmp_path / "ratios.toml")
    with pytest.raises(Refusal, match="number"):
        validated(Wish, {"bare": True, "guests": [{"number": 0}]}, tmp_path / "ratios.toml")


def test_a_run_with_few_requests_is_refused(tmp_path: Path) -> None:
    few = {"bare": True, "guests": [{"rate_per_s": 20}]}
    with pytest.raises(Refusal, match="rate_per_s: a run has less than 100 requests"):
        validated(Wish, few, tmp_path / "ratios.toml")


def test_the_busiest_situation_comes_first_in_a_report() -> None:
    store = Store(STUDY / "ratios-results", Wish)
    found = busiest_first(kept(store.kept(), store.done()))
    busy = [lines[0].busy for _, _, lines in found]
    assert busy == sorted(busy, reverse=True)
    assert found[0][2][0].answer is Answer.GAIN
    assert sorted(name for name, _, _ in found) == sorted({one.cell for one in store.done()})


def test_what_is_measured_already_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_before = Store(STUDY / "ratios-results", Wish)
    asked, done = kept_before.kept(), kept_before.done()
    store = Store(tmp_path, Wish)
    store.begin(asked)
    blocks = asked.wish.blocks("kvm")
    measured = [one for one in done if one.key != blocks[7].key]
    for one in measured:
        store.add(next(block for block in blocks if block.key == one.key), one.runs)
    again: list[str] = []
    monkeypatch.setattr(family, "accelerator_for", lambda _: Accelerator.KVM)
    monkeypatch.setattr(family, "this_host", lambda known, _: dict(known.host))
    monkeypatch.setattr(family, "leaving_as_before", lambda _, act: act())

    def measure(_: Wish, missing: Sequence[Block[Situation]], __: Store[Wish]) -> None:
        again.extend(block.cell.name for block in missing)

    monkeypatch.setattr(family, "_measure", measure)
    family.run(told_in(STUDY / "ratios.toml"), STUDY / "ratios.toml", tmp_path, Ways())
    assert again == [blocks[7].cell.name]


def test_guests_are_told_when_their_background_rests() -> None:
    assert Guests(gap_us=5_000).options == "helpers=2 background=8 burst_us=10000 gap_us=5000"
    assert Situation(Guests(number=2), "tcg", libvirt=True).name == "2 domains, tcg"
    asked = Situation(Guests(memcached=Mix(get_ratio=0.5)), "kvm", libvirt=False).name
    assert asked == "3 guests, memcached with values of 100 bytes and 50 % gets, kvm"


def test_groups_come_after_their_parents() -> None:
    made: set[str] = set()
    for group in groups(Guests()):
        assert group.name == "" or group.name.rpartition("/")[0] in made | {""}
        made.add(group.name)


@given(COUNTS)
def test_what_is_the_same_agrees_wholly(counts: dict[tuple[int, int], int]) -> None:
    found = agreement(counts, counts)
    assert (found.precision, found.recall) == (1, 1)


@given(COUNTS, COUNTS)
def test_precision_and_recall_are_the_same_with_sides_exchanged(
    true: dict[tuple[int, int], int], said: dict[tuple[int, int], int]
) -> None:
    one, other = agreement(true, said), agreement(said, true)
    assert (one.precision, one.recall) == (other.recall, other.precision)
    assert 0 <= one.precision <= 1


def test_a_wake_up_by_the_wrong_vcpu_is_neither_precise_nor_recalled() -> None:
    found = agreement({(0, 1): 8, (1, 0): 2}, {(0, 1): 10, (2, 0): 6})
    assert (found.precision, found.recall) == (8 / 16, 8 / 10)
    both = total([found, agreement({(0, 1): 10}, {(0, 1): 10})])
    assert (both.true, both.said, both.both) == (20, 26, 18)


def test_a_daemon_that_says_nothing_has_no_precision() -> None:
    assert agreement({(0, 1): 8}, {}).precision == 0
    assert agreement({}, {(0, 1): 8}).recall == 0


def statistics(woken_by: tuple[int, ...]) -> VcpuStatistics:
    none = (0,) * len(woken_by)
    return VcpuStatistics(*(0,) * 11, posted=none, rang=none, woken_by=woken_by)


def test_what_a_guest_counted_is_what_its_counters_grew_by() -> None:
    before = [statistics((0, 5)), statistics((3, 0))]
    after = [statistics((0, 5)), statistics((10, 0))]
    assert counted(before, after) == {(0, 1): 7}


@pytest.mark.parametrize("range_of_others", ["32768\t60999", "1024\t65535", "2000\t65535", "8192\t20000"])
def test_a_guest_has_ports_that_nobody_gets_who_asks_for_none_where_there_are_some(
    range_of_others: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "range"
    file.write_text(range_of_others + "\n")
    monkeypatch.setattr(words, "EPHEMERAL", file)
    lowest = int(range_of_others.split()[0])
    for _ in range(20):
        ports = words.free_ports()
        assert len({*ports}) == 2
        assert all(1024 <= port < (lowest if lowest > 8000 else 65536) for port in ports)

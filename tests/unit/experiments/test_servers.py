"""Experiments with Debian's servers in counted guests, without a guest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.drivers.beside import BATCH
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.servers import SERVERS
from experiments.plan.blocks import blocks_of
from experiments.plan.file import told_in
from experiments.plan.order import Order
from experiments.plan.servers import Servers
from experiments.run.guests import task_for
from experiments.run.planned import experiment_in, missing_here

HERE = Path(__file__).resolve().parents[3] / "experiments/studies/servers"
FILES = sorted((*HERE.glob("*.toml"), *HERE.with_name("kvm").glob("*.toml")))

ONE = """
cpus = 4
policies = []
[[server]]
driver = "memcached"
vms = [2]
rates_per_s = [100]
request_us = 50
"""


def read(file: Path) -> Servers:
    found = experiment_in(told_in(file), file)
    assert isinstance(found, Servers)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_a_guest_is_told_its_block_in_a_word_that_fits(file: Path) -> None:
    experiment = read(file)
    for block in blocks_of(experiment.cells.possible, experiment.arms, 1, experiment.seed):
        told = Order.read(task_for(experiment, block).word)
        assert (told.experiment, told.block) == (dataclasses.replace(experiment, title=""), block)


def test_a_vm_has_the_servers_threads_and_background_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE + "threads = 2\nbackground = 3\nbursts_per_s = 30\n")
    (cell,) = read(file).cells.possible
    assert [tenant.name for tenant in cell.scenario.tenants] == ["memcached-0", "memcached-1"]
    assert {tenant.vcpus for tenant in cell.scenario.tenants} == {5}
    assert dict(cell.scenario.tenants[0].options)["bursts-per-s"] == "10"
    assert (cell.ratio, cell.utilisation) == (2.5, round(2 * (100 * 50 + 30 * 10_000) / 4e6, 3))


def test_a_guest_gets_the_programs_of_its_servers(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE)
    assert read(file).packages == {"memcached": "memcached"}
    assert read(file).applications == ()


def test_a_guest_gets_the_users_applications_and_what_holds_them(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE.replace('"memcached"', '"tailbench-silo"') + 'options = { gate = "true" }\n')
    assert read(file).packages == {"dasec-gate.so": "gcc"}
    assert read(file).applications == ("silo",)


def test_a_check_says_that_the_users_applications_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE.replace('"memcached"', '"tailbench-silo"') + 'options = { gate = "true" }\n')
    monkeypatch.delenv("TAILBENCH_DIR", raising=False)
    lines = [line for line in missing_here(read(file)) if "TAILBENCH_DIR" in line]
    assert lines == ["TAILBENCH_DIR: not set: name the folder of an installation with silo"]


def test_a_kernel_without_modules_has_no_virtual_machines(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    kvm = ONE.replace('"memcached"', '"kvm"') + "threads = 2\n"
    file.write_text(kvm.replace("cpus = 4", 'cpus = 4\nkernel = "sched_ext"'))
    with pytest.raises(Refusal) as refused:
        read(file)
    assert refused.value.lines[-1].endswith(
        "kernel: sched_ext has no module kvm_amd: take one of 6.12, newer"
    )
    file.write_text(kvm)
    assert read(file).modules == ("kvm_amd",)


def test_domains_are_virtual_machines_and_only_their_emulators_follow(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    following = ONE.replace("policies = []", 'policies = ["critical+follow"]')
    kvm = following.replace('"memcached"', '"kvm"') + "threads = 2\n"
    file.write_text(f"domains = true\n{kvm}")
    assert all(tenant.is_domain for tenant in read(file).cells.possible[0].scenario.tenants)
    (block,) = blocks_of(read(file).cells.possible, read(file).arms, 1, 1)
    assert 'emulator = "follow"' in read(file).plan(block).settings["critical+follow"]
    for told, complaint in (
        (kvm, r"\+follow: is about domains: set domains = true, too"),
        (f"domains = true\n{following}", "are of the driver kvm alone, in the layout vm"),
        (f'domains = true\nlayouts = ["shared"]\n{kvm}', "are of the driver kvm alone, in the layout vm"),
        (f"domains = true\n{kvm.replace('critical+', 'scx+')}", r"scx\+follow is unknown"),
    ):
        file.write_text(told)
        with pytest.raises(Refusal, match=complaint):
            read(file)


BESIDE = """
[[batch]]
driver = "sysbench-cpu"
vms = 1
threads = 3
"""


def test_batch_work_beside_has_vms_of_its_own_and_leaves_no_cpu_without_work(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE + BESIDE)
    (cell,) = read(file).cells.possible
    assert [tenant.name for tenant in cell.scenario.tenants] == [
        "memcached-0",
        "memcached-1",
        "sysbench-cpu-0",
    ]
    assert cell.scenario.tenants[-1].vcpus == 3
    assert cell.utilisation == round((2 * 100 * 50 / 1e6 + 3) / 4, 3)
    assert read(file).packages == {"memcached": "memcached", "sysbench": "sysbench"}


def test_more_threads_than_cpus_keep_all_of_them_busy_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE + BESIDE.replace("threads = 3", "threads = 9"))
    assert read(file).cells.possible[0].utilisation == 1


def test_matrixmul_needs_no_package(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(ONE + BESIDE.replace("sysbench-cpu", "matrixmul"))
    assert read(file).packages == {"memcached": "memcached"}


def test_batch_work_that_nobody_knows_is_refused_with_that_which_is_known(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(ONE + BESIDE.replace("sysbench-cpu", "bitcoin"))
    with pytest.raises(Refusal, match="bitcoin is unknown: known are matrixmul, sysbench-cpu"):
        read(file)


def test_batch_work_that_cannot_be_done_is_refused_before_a_guest_begins(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    for told, complaint in (
        (BESIDE.replace("sysbench-cpu", "matrixmul").replace("threads = 3", "threads = 1"), "at least 2"),
        (f"{BESIDE}options = {{ colour = 'red' }}\n", "any: colour: is no option of this application"),
    ):
        file.write_text(ONE + told)
        with pytest.raises(Refusal, match=complaint):
            read(file)


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("background = 2\n", "background and bursts_per_s go together"),
        ('options = { colour = "red" }\n', "any: colour: is no option of this application"),
        ('name = "x"\nspeed = 3\n', "server[0].speed"),
    ],
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, more: str, complaint: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(ONE + more)
    with pytest.raises(Refusal) as refused:
        read(file)
    assert refused.value.status is ExitStatus.USAGE
    assert complaint in "\n".join(refused.value.lines)


def test_two_servers_of_one_name_that_differ_are_refused_and_no_one_of_them_is_left_out(
    tmp_path: Path,
) -> None:
    file = tmp_path / "two.toml"
    table = ONE[ONE.index("[[server]]") :]
    more = 'options = { get-ratio = "0.5" }\n'
    file.write_text(ONE + table + more)
    with pytest.raises(Refusal, match="memcached-2x100-r0.5-.*: there twice: give each server a name"):
        read(file)
    file.write_text(ONE + table + more + 'name = "half"\n')
    assert len(read(file).cells.possible) == 2
    file.write_text(ONE + table)  # twice the same
    assert len(read(file).cells.possible) == 1


def test_a_server_that_nobody_knows_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(ONE.replace('"memcached"', '"oracle"'))
    with pytest.raises(
        Refusal,
        match="oracle is unknown: known are memcached, redis, nginx, postgres, rocksdb, kvm, go, java, tail",
    ):
        read(file)


def test_a_guest_is_asked_for_no_model_that_is_not_exported_for_it(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    asked = ONE.replace('"memcached"', '"gluoncv-image-classification"')
    for options in ("", 'options = { model = "mobilenet1.0" }\n'):
        file.write_text(asked + options)
        with pytest.raises(Refusal, match="options: model: guests that count have cifar_resnet20_v1 only"):
            read(file)
    file.write_text(asked + 'options = { model = "cifar_resnet20_v1" }\n')
    assert read(file).packages == {"dasec-gluoncv": "libgomp1"}


def test_it_does_not_run_on_a_host(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('place = "host"\n' + ONE)
    with pytest.raises(Refusal, match="runs in the testbed"):
        read(file)


def test_hosts_have_the_same_drivers() -> None:
    assert all(DRIVERS[name] is driver for name, driver in {**SERVERS, **BATCH}.items())

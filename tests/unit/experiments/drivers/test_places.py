"""What needs no root of the places: trees of processes, what crun is told, and why a place is not there."""

from __future__ import annotations

import json
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.errors import Refusal
from dasec.lab.kit.process import Child, descendants, held, in_session, one_look, within
from experiments.places import guest
from experiments.places.bundle import run_command, write_bundle
from experiments.places.guest import accelerator, image, missing_image, qemu_command, unbuilt_image
from experiments.places.places import PLACES, Anywhere
from guests.built import IMAGES, HostCannotError


def proc_with(root: Path, parents: dict[int, int], *, listed: bool) -> Path:
    """A /proc of these processes, each with its parent; 0 has none."""
    for pid in parents:
        task = root / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        below = [str(child) for child, parent in parents.items() if parent == pid]
        if listed:
            (task / "children").write_text(" ".join(below))
        (root / str(pid) / "stat").write_text(f"{pid} (a ) b) S {parents[pid]} {pid} {pid} 0 -1")
    return root


@pytest.mark.parametrize("listed", [True, False], ids=["by lists", "by parents"])
@given(given=st.dictionaries(st.integers(2, 30), st.integers(1, 29), max_size=12))
def test_all_below_a_process_are_found_once(
    tmp_path_factory: pytest.TempPathFactory, given: dict[int, int], *, listed: bool
) -> None:
    parents = {
        1: 0,
        **{
            pid: parent if parent < pid and (parent == 1 or parent in given) else 1
            for pid, parent in given.items()
        },
    }
    found = list(descendants(1, proc_with(tmp_path_factory.mktemp("proc"), parents, listed=listed)))
    assert sorted(found) == sorted(parents)


def test_one_look_serves_all_who_ask_until_it_is_over(tmp_path: Path) -> None:
    proc = proc_with(tmp_path, {1: 0, 2: 1, 3: 2}, listed=True)
    with one_look(proc):
        (tmp_path / "3" / "stat").write_text("3 (a ) b) S 1 3 3 0 -1")
        (tmp_path / "2" / "task" / "2" / "children").write_text("")
        assert list(descendants(2, proc)) == [2, 3]
    assert list(descendants(2, proc)) == [2]


def test_a_session_has_its_living_processes_only(tmp_path: Path) -> None:
    for pid, state, session in ((5, "S", 5), (6, "R", 5), (7, "Z", 5), (8, "S", 1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a ) b) {state} 1 {session} {session} 0 -1")
    assert sorted(in_session(5, tmp_path)) == [5, 6]


def child_of(tmp_path: Path, *command: str) -> Child:
    return Child.start("one", Anywhere(), command, tmp_path / "log")


def test_a_held_command_begins_when_it_is_told_and_keeps_its_process(tmp_path: Path) -> None:
    child = child_of(tmp_path, *held(("/bin/sh", "-c", "echo $$ $(cat /proc/uptime)")))
    time.sleep(0.1)
    child.ensure_alive()
    begin_s = time.clock_gettime(time.CLOCK_BOOTTIME) + 0.2
    child.release(time.monotonic_ns() + 200_000_000)
    assert child.wait(60) == 0
    pid, uptime_s, *_ = child.log.read_text().split()
    assert int(pid) == child.process.pid
    assert float(uptime_s) >= begin_s - 0.02


def test_folder_and_variables_are_those_that_were_given(tmp_path: Path) -> None:
    child = child_of(
        tmp_path, *within(tmp_path, {"COLOUR": "red blue"}, ("/bin/sh", "-c", 'echo "$PWD $COLOUR"'))
    )
    assert child.wait(60) == 0
    assert child.log.read_text() == f"{tmp_path} red blue\n"


def test_a_child_that_ends_early_says_its_last_words(tmp_path: Path) -> None:
    child = child_of(tmp_path, "/bin/sh", "-c", "echo no such colour; exit 3")
    child.wait(60)
    with pytest.raises(Refusal, match="one: ended early, exit status 3: no such colour"):
        child.ensure_alive()


def test_what_a_child_left_behind_is_ended_too(tmp_path: Path) -> None:
    child = child_of(tmp_path, "/bin/sh", "-c", "sleep 1000 & exec true")
    assert child.wait(60) == 0
    assert in_session(child.process.pid)
    child.kill()
    assert in_session(child.process.pid) == ()


def test_a_container_sees_the_host_read_only_and_writes_to_its_orders_alone(tmp_path: Path) -> None:
    root, bundle, orders = tmp_path / "root", tmp_path / "bundle", tmp_path / "orders"
    for name in ("usr/bin", "etc", "proc", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    write_bundle(bundle, ("true", "a b"), (orders,), root)
    config = json.loads((bundle / "config.json").read_text())
    bound = {one["destination"]: one["options"][-1] for one in config["mounts"] if one["type"] == "bind"}
    assert bound == {"/usr": "ro", "/etc": "ro", str(orders): "rw"}
    assert config["process"]["args"] == ["true", "a b"]
    assert {one["type"] for one in config["linux"]["namespaces"]} == {"pid", "mount", "ipc", "uts"}
    assert (bundle / "rootfs/bin").readlink() == Path("usr/bin")


def test_how_a_container_is_run_is_a_script_that_a_shell_reads(tmp_path: Path) -> None:
    *_, shell, option, script, _, _ = run_command(tmp_path, "one")
    assert (shell, option) == ("/bin/sh", "-c")
    assert subprocess.run([shell, "-n", option, script], check=False).returncode == 0


def test_every_place_that_is_not_there_has_a_reason_of_one_line() -> None:
    assert PLACES["here"]() is None
    for missing in PLACES.values():
        reason = missing()
        assert reason is None or (reason and "\n" not in reason)


@pytest.fixture
def bare_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without programs and without images, which would lie in this folder."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("DASEC_IMAGES_CACHE", str(tmp_path / "images"))
    return tmp_path / "images"


def test_what_an_image_is_built_with_is_missed_before_it_is_built(bare_host: Path) -> None:
    assert "missing on this machine: binutils cpio" in (missing_image() or "")
    assert not bare_host.exists()


def test_an_image_that_is_there_needs_nothing_to_build_it(
    bare_host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for program in ("mmdebstrap", "cpio", "depmod", "modprobe", "readelf", "make", "cc"):
        (tmp_path / "bin" / program).touch(mode=0o755)
    told = subprocess.run([*IMAGES, "--check", guest.IMAGE], capture_output=True, text=True, check=True)
    folder = Path(told.stdout.strip())
    assert (folder.parent, folder.exists()) == (bare_host, False)
    folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", "")
    assert missing_image() is None


class Builder:
    """Has no network."""

    def __init__(self) -> None:
        self.tried = 0

    def __call__(self, name: str) -> Path:
        self.tried += 1
        raise HostCannotError(f"{name}: no archive answers")


def test_an_image_that_could_not_be_built_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder()
    monkeypatch.setattr(guest, "guest_image", builder)
    guest.built.cache_clear()
    try:
        assert unbuilt_image() == "guest image: small: no archive answers"
        for _ in range(2):
            with pytest.raises(Refusal, match="guest image: small: no archive answers"):
                image()
    finally:
        guest.built.cache_clear()
    assert builder.tried == 1


def test_a_guest_is_told_its_command_through_the_kernels_command_line(tmp_path: Path) -> None:
    told = qemu_command(tmp_path, ("serve", "-t", "two words"), "cache-0", 3, (4711,))
    by_option = dict(pairwise(told))
    assert by_option["-append"].endswith(' -- serve -t "two words"')
    assert by_option["-smp"] == "3"
    assert ",hostfwd=tcp:127.0.0.1:4711-:4711" in by_option["-netdev"]
    assert by_option["-name"] == "cache-0,debug-threads=on"  # or else no thread can be told to be a vCPU


@pytest.mark.parametrize(
    ("flags", "device", "chosen"),
    [("fpu vmx", True, "kvm"), ("fpu svm", True, "kvm"), ("fpu", True, "tcg"), ("fpu vmx", False, "tcg")],
)
def test_a_guest_uses_kvm_only_where_processor_and_device_are_there(
    tmp_path: Path, flags: str, device: bool, chosen: str
) -> None:
    (tmp_path / "cpuinfo").write_text(f"flags\t\t: {flags}\n")
    if device:
        (tmp_path / "kvm").touch()
    assert accelerator(tmp_path / "kvm", tmp_path / "cpuinfo") == chosen


@pytest.mark.parametrize("word", ["", 'a "quoted" word'])
def test_what_a_kernels_command_line_cannot_say_is_no_guests_command(tmp_path: Path, word: str) -> None:
    with pytest.raises(ValueError, match="no way to say"):
        qemu_command(tmp_path, ("serve", word), "cache-0", 1, ())

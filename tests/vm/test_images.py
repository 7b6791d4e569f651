"""Guest images: built, checked, booted. vm-images/README.md says what they are."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from guests.boot import GuestRun, run_until_end
from guests.built import IMAGES
from guests.counted import COUNTED
from guests.qemu import Qemu
from tests.vm.conftest import build_image
from tests.vm.errands import GuestImage

GUEST_TIMEOUT_S = 300
BOOT_LIMIT_S = 30.0
"""By the guest's own clock; it takes 3 s."""

JOB = (
    "memcached -d -u root; until echo quit | nc 127.0.0.1 11211; do sleep 0.1; done;"
    " dasec-load memcached --keys 50 --rate 50 --seconds 1 --warmup 0;"
    " dasec-load service --rate 20 --seconds 1 --warmup 0; ls /sys/class/net; sha256sum /init"
)


@pytest.fixture(scope="module")
def small() -> Path:
    return build_image("small")


@pytest.fixture(scope="module")
def said(small: Path, qemu: Qemu) -> GuestRun:
    """What a guest with the small image said; it counts instructions, so that each run is the same."""
    arguments = [
        *(*qemu.command(), *COUNTED, "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-cpu", "max", "-smp", "2", "-m", "256", "-nic", "user,model=virtio-net-pci,restrict=on"),
        *("-kernel", str(small / "vmlinuz"), "-initrd", str(small / "initramfs")),
        *("-append", f'console=ttyS0 quiet panic=-1 rdinit=/init -- sh -c "{JOB}"'),
    ]
    return run_until_end(arguments, GUEST_TIMEOUT_S)


def build(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [*IMAGES, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


@pytest.mark.vm
@pytest.mark.ahead.with_args(GuestImage("small"))
def test_an_image_is_what_its_checksums_say_and_names_its_packages(small: Path) -> None:
    lines = (small / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert set(sums) == {"vmlinuz", "initramfs", "packages"}
    assert sums == {name: hashlib.sha256((small / name).read_bytes()).hexdigest() for name in sums}
    packages = (small / "packages").read_text().splitlines()
    assert {"busybox-static", "memcached", "libc6"} <= {line.split()[0] for line in packages}


@pytest.mark.vm
@pytest.mark.ahead.with_args(GuestImage("small"))
def test_the_small_image_boots_in_seconds_and_serves(said: GuestRun) -> None:
    assert said.exit_status == 0, said.console
    up = re.search(r"^GUEST-UP:([\d.]+)$", said.console, re.MULTILINE)
    assert up is not None, said.console
    assert float(up.group(1)) < BOOT_LIMIT_S
    results = [json.loads(line) for line in said.console.splitlines() if line.startswith('{"schema"')]
    assert [one["subcommand"] for one in results] == ["memcached", "service"]
    for one in results:
        assert one["completed"] == one["arrivals_scheduled"] > 0
    assert "eth0" in said.console


@pytest.mark.vm
@pytest.mark.slow
def test_two_builds_of_an_image_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    sums = []
    for number in (1, 2):
        done = build("small", environment={"DASEC_IMAGES_CACHE": str(tmp_path / str(number))})
        assert done.returncode == 0, done.stderr
        sums.append((Path(done.stdout.splitlines()[-1]) / "SHA256SUMS").read_text())
    assert sums[0] == sums[1]


@pytest.mark.parametrize(
    ("image", "variable", "complaint"),
    [
        ("medium", {}, "medium: no such image: known are python, small, tailbench"),
        ("tailbench", {}, "TAILBENCH_DIR: not set: name the directory of your installation"),
        ("tailbench", {"TAILBENCH_DIR": "/absent"}, "TAILBENCH_DIR: /absent: is no directory"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(
    image: str, variable: dict[str, str], complaint: str
) -> None:
    done = build(image, environment={"TAILBENCH_DIR": "", **variable})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{complaint}\n")
    assert done.stderr.count("\n") == 1

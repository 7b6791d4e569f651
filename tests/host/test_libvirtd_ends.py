"""A libvirtd of a test's own ends with whoever started it, and says why it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dasec.errors import ExitStatus, Refusal
from experiments.places.libvirtd import own_libvirtd
from guests import libvirtd
from guests.built import HostCannotError
from guests.waiting import gone, wait_for
from tests.conftest import refuse

pytestmark = [pytest.mark.host, pytest.mark.libvirt, pytest.mark.libvirtd]

STARTER = """
import sys, time
from pathlib import Path
import libvirt
from guests.domains import DOMAIN, boot_disk, pid_of
from guests.libvirtd import Libvirtd
folder, name = Path(sys.argv[1]), sys.argv[2]
started = Libvirtd(folder / "log")
libvirt.open(started.uri).createXML(DOMAIN.format(name=name, maximum=2, disk=boot_disk(folder)))
daemons = (int((started.root / f"run/libvirt/{one}.pid").read_text()) for one in ("libvirtd", "virtlogd"))
print(pid_of(started, name), *daemons, flush=True)
time.sleep(3600)
"""


def groups(name: str) -> list[Path]:
    """Of a domain."""
    return [*Path("/sys/fs/cgroup").glob(f"**/machine/qemu-*-{name}.libvirt-qemu")]


def test_domains_and_their_libvirtd_do_not_outlive_who_started_them_and_was_killed(
    repository: Path, tmp_path: Path
) -> None:
    if missing := libvirtd.missing_tools():
        refuse(f"not installed: {', '.join(missing)}")
    name = f"dasec-killed-{os.getpid()}"
    command = [sys.executable, "-c", STARTER, str(tmp_path), name]
    with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pids = [int(word) for word in starter.stdout.readline().split()]
        before = groups(name)
        starter.kill()
    assert (len(pids), bool(before)) == (3, True)
    wait_for(lambda: all(map(gone, pids)) and not groups(name))


def test_where_there_can_be_no_namespace_of_its_own_it_says_why_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libvirtd, "SCRIPT", "echo mount: permission denied; exit 32")
    with pytest.raises(HostCannotError, match="^a libvirtd of our own: mount: permission denied$"):
        libvirtd.Libvirtd(tmp_path / "log")
    with pytest.raises(Refusal) as caught:
        own_libvirtd(tmp_path)
    assert caught.value.lines == ("a libvirtd of our own: mount: permission denied",)
    assert caught.value.status is ExitStatus.HOST

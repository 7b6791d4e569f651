"""The playbook as operators run it: two machines with systemd, reached by ssh; all is real."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.lab.kit.process import free_port
from guests.qemu import Qemu
from guests.throw_away import MODULES, CgroupLayout, GuestKernel, debian_kernel, run_in_guest
from guests.waiting import wait_for
from tests.conftest import refuse
from tests.fleet.trees import ANSIBLE, tool
from tests.vm import systemd
from tests.vm.test_kernels_and_layouts import EEVDF

SSHD = Path("/usr/sbin/sshd")
LIFE_S = 7200
"""What ends a guest that hangs. On two cores with fifty others the test took three quarters of an hour."""

BOOT_S = 900.0
UNREACHED = 255
"""ssh's own status (ssh(1)); else it is the command's."""

OPTIONS = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ConnectTimeout=120")
JOB = """\
ip link set lo up
ip link set "$(ls /sys/class/net | grep -v lo)" up
ip addr add 10.0.2.15/24 dev "$(ls /sys/class/net | grep -v lo)"
mkdir -p /run/sshd /run/keys
cp {keys}/* /run/keys && chmod 600 /run/keys/host /run/keys/known
cp /bin/sleep /run/guinea && /run/guinea 100000 &
{sshd} -D -e -f /dev/null -h /run/keys/host -o AuthorizedKeysFile=/run/keys/known -o StrictModes=no \
  -o UsePAM=no -o PermitRootLogin=yes &
until [ -e /run/over ]; do sleep 1; done
"""
MANAGED = """\
policy = "static"
period_ms = 500
[[workload]]
name = "sleep"
match = { comm = "guinea" }
"""


@dataclass(frozen=True)
class SshGuest:
    """A machine behind a port of this one."""

    name: str
    port: int
    key: Path

    @property
    def ssh(self) -> list[str]:
        """The command line up to the host."""
        options = [word for option in OPTIONS for word in ("-o", option)]
        return ["ssh", "-i", str(self.key), "-p", str(self.port), *options]

    def says(self, command: str) -> str:
        """What a command of root's prints there, whatever its status."""
        done = self._ask(command)
        assert done.returncode != UNREACHED, done.stderr
        return done.stdout.strip()

    def is_up(self) -> bool:
        """Does it answer?"""
        return self._ask("true").returncode == 0

    def end(self) -> None:
        """It leaves by itself."""
        self._ask("touch /run/over")

    def _ask(self, command: str) -> subprocess.CompletedProcess[str]:
        full = [*self.ssh, "root@127.0.0.1", command]
        return subprocess.run(full, capture_output=True, text=True, check=False)

    def seen(self) -> dict[str, str]:
        """What a roll-out may change, and whether the same daemon runs."""
        status = json.loads(self.says("dasec status --json") or "{}")
        return {
            "package": self.says("dpkg-query --show --showformat='${db:Status-Status}' dasec"),
            "config": self.says("cat /etc/dasec/dasec.toml"),
            "policy": str(status.get("policy")),
            "service": self.says("systemctl is-enabled dasec; systemctl is-active dasec"),
            "process": self.says("systemctl show -P MainPID dasec"),
            "verify": self.says("dasec verify").partition(":")[0],
            "kept": self.says("ls -d /var/lib/dasec-before"),
        }


def key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


def life(guest: SshGuest, kernel: GuestKernel, qemu: Qemu, scratch: Path, keys: Path) -> str:
    """From its boot to its end."""
    forward = f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{guest.port}-:22"
    machine = (*systemd.machine(qemu), "-netdev", forward, "-device", "virtio-net-pci,netdev=net")
    job = JOB.format(keys=keys, sshd=SSHD)
    run = run_in_guest(
        kernel, CgroupLayout.V2, job, scratch, LIFE_S, init=systemd.INIT, machine=machine, cpus=2
    )
    return run.console


@pytest.fixture(scope="module")
def guests(qemu: Qemu, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SshGuest]]:
    """Two of them, until the tests are over."""
    missing = [*systemd.missing(), *(["openssh-server"] if not SSHD.exists() else [])]
    if missing:
        refuse(f"needs {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("ssh")
    keys = folder / "keys"
    keys.mkdir()
    key(keys / "host")
    mine = key(folder / "mine")
    (keys / "known").write_text((folder / "mine.pub").read_text())
    kernel = debian_kernel(EEVDF, (*MODULES, "virtio_net"))
    found = [SshGuest(name, free_port(), mine) for name in ("h1", "h2")]
    with ThreadPoolExecutor(2) as pool:
        lives = []
        for each in found:
            scratch = folder / each.name
            scratch.mkdir()
            lives.append(pool.submit(life, each, kernel, qemu, scratch, keys))
        try:
            for each, its_life in zip(found, lives, strict=True):
                wait_for(lambda each=each, its_life=its_life: its_life.done() or each.is_up(), BOOT_S, 5.0)  # type: ignore[misc]
                assert not its_life.done(), its_life.result()[-4000:]
            yield found
        finally:
            for each in found:
                each.end()


def inventory(guests: list[SshGuest], folder: Path, **given: object) -> Path:
    """What a user would write of them; `given` are variables of all."""
    hosts = {
        each.name: {
            "ansible_host": "127.0.0.1",
            "ansible_port": each.port,
            "ansible_ssh_private_key_file": str(each.key),
            "ansible_ssh_common_args": " ".join(f"-o {option}" for option in OPTIONS),
            "ansible_user": "root",
            "ansible_become": False,
            "ansible_timeout": 120,
            "ansible_ssh_pipelining": True,
            "ansible_python_interpreter": "/usr/bin/python3",
            **given,
        }
        for each in guests
    }
    path = folder / "hosts.json"
    path.write_text(json.dumps({"dasec": {"hosts": hosts}}))
    return path


def roll_out(
    guests: list[SshGuest], folder: Path, package: Path, config: str | None, state: str = "present"
) -> tuple[dict[str, dict[str, int]], str]:
    """The recap by host, and all that was said."""
    given = {
        "dasec_package": str(package),
        "dasec_dpkg_options": ["--force-depends"],
        "dasec_config": config or "",
        "dasec_state": state,
        "dasec_watch_looks": 2,
        "dasec_watch_pause_s": 1,
        "dasec_watch_budget_factor": 1000,
    }
    command = [
        str(tool("ansible-playbook")),
        "-i",
        str(inventory(guests, folder, **given)),
        str(ANSIBLE / "rollout.yml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    recap = {
        name: {word: int(number) for word, number in re.findall(r"(\w+)=(\d+)", line)}
        for name, line in re.findall(r"^(h\d)\s+:(.*)$", done.stdout.partition("PLAY RECAP")[2], re.MULTILINE)
    }
    return recap, done.stdout + done.stderr


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.timeout(LIFE_S + 600)
def test_two_machines_over_ssh_get_it_keep_it_and_lose_it(
    guests: list[SshGuest], deb: Path, tmp_path: Path
) -> None:
    recap, said = roll_out(guests, tmp_path, deb, MANAGED)
    assert {name: each["failed"] for name, each in recap.items()} == {"h1": 0, "h2": 0}, said
    first = [each.seen() for each in guests]
    for seen in first:
        assert (seen["package"], seen["policy"], seen["verify"]) == ("installed", "static", "clean")
        assert (seen["service"], seen["config"], seen["kept"]) == ("enabled\nactive", MANAGED.strip(), "")

    recap, said = roll_out(guests, tmp_path, deb, MANAGED)
    assert {name: each["changed"] for name, each in recap.items()} == {"h1": 0, "h2": 0}, said
    assert [each.seen() for each in guests] == first

    recap, said = roll_out(guests, tmp_path, deb, "policy = 7\n")
    assert (recap["h1"]["failed"], "h2" in recap) == (1, False), said
    after = [each.seen() for each in guests]
    assert {**after[0], "process": ""} == {**first[0], "process": ""}
    assert after[1] == first[1]

    recap, said = roll_out(guests, tmp_path, deb, None, state="absent")
    assert {name: each["failed"] for name, each in recap.items()} == {"h1": 0, "h2": 0}, said
    for each in guests:
        assert each.seen()["package"] == "config-files"
        assert each.says("ls /run/dasec/journal /usr/bin/dasec") == ""

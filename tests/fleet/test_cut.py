"""The role's own tool, cut off in the middle: the next one does the rest, and no host is half of each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .trees import ANSIBLE, DPKG_OPTIONS, OTHER, SYSTEMCTL, TOOL_DIRECTORIES, Host, write

KILLER = """\
#!/bin/sh
# The call whose number is in `at` kills its caller; of what rm was to remove the directories are left.
here=${0%/*}
name=${0##*/}
case "$name $1" in
"systemctl is-"*) ;;
*)
    echo "$name $*" >>"$here/calls"
    if [ "$(wc -l <"$here/calls")" = "$(cat "$here/at")" ]; then
        for last; do :; done
        [ "$name" != rm ] || find "$last" -type f -delete
        kill -9 "$PPID"
        exit 1
    fi
    ;;
esac
exec "$(PATH=${PATH#*:} command -v "$name")" "$@"
"""
KILLERS = ("systemctl", "dpkg", "dpkg-deb", "rm", "mv", "cp", "touch")
TOOL = ANSIBLE / "roles/dasec/files/before"
WHOLE = 0


def run(root: Path, *command: str | Path, cut: int = WHOLE) -> int:
    """Runs it on a tree up to the call of this number; how many calls that change something it made."""
    killers = root.parent / "killers"
    for name in KILLERS:
        write(killers / name, KILLER, 0o755)
    write(killers / "at", f"{cut}\n")
    write(killers / "calls", "")
    write(root.parent / "bin/systemctl", SYSTEMCTL, 0o755)
    path = f"{killers}:{root.parent / 'bin'}:{TOOL_DIRECTORIES}"
    environment = {"PATH": path, "DASEC_TREE": str(root)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=root)
    assert cut or done.returncode == 0, done.stderr
    return len((killers / "calls").read_text().splitlines())


def tool(root: Path, job: str, *more: str, cut: int = WHOLE) -> int:
    return run(root, "sh", TOOL, job, root, *more, cut=cut)


def dpkg(root: Path, *action: str, cut: int = WHOLE) -> int:
    program = shutil.which("dpkg", path=TOOL_DIRECTORIES) or "dpkg"
    return run(root, program, f"--root={root}/", "--force-confold", *DPKG_OPTIONS, *action, cut=cut)


def copy(host: Host, name: str) -> Host:
    """A host that is as this one is."""
    return Host(shutil.copytree(host.root.parent, host.root.parent.with_name(name)) / "tree")


@pytest.fixture(params=["upgrade", "installation", "removal"])
def begun(
    request: pytest.FixtureRequest, tmp_path: Path, host: Host, old: Path, new: Path
) -> tuple[Host, Host, list[str]]:
    """A host before a roll-out, when that has kept aside what there is, and what dpkg is to do then."""
    before = Host(tmp_path / "before/tree")
    if request.param == "installation":
        Host.bare(before.root)
    else:
        shutil.copytree(host.root, before.root)
    begun = copy(before, "begun")
    tool(begun.root, "take", "2.0")
    action = {
        "upgrade": ["--install", str(new)],
        "installation": ["--install", str(old)],
        "removal": ["--remove", "dasec"],
    }
    return before, begun, action[request.param]


@pytest.fixture
def pair(begun: tuple[Host, Host, list[str]]) -> tuple[Host, Host]:
    """A host before a roll-out, and when that has come as far as its watch."""
    before, host, action = begun
    after = copy(host, "after")
    dpkg(after.root, *action)
    kept = after.root / "var/cache/dasec.deb"
    if action[0] == "--install":
        shutil.copy(action[1], kept)
        write(after.root / "etc/dasec/dasec.toml", OTHER)
        run(after.root, "sh", "-ec", "systemctl enable dasec\nsystemctl restart dasec\n:")
    else:
        kept.unlink()
    assert after.content() != before.content()
    return before, after


def test_wherever_dpkg_was_cut_off_the_host_is_put_back(begun: tuple[Host, Host, list[str]]) -> None:
    before, host, action = begun
    calls = dpkg(copy(host, "whole").root, *action)
    assert calls > 2
    for number in range(1, calls + 1):
        one = copy(host, f"cut{number}")
        dpkg(one.root, *action, cut=number)
        tool(one.root, "put-back", *DPKG_OPTIONS)
        assert one.content() == before.content(), f"cut off at call {number} of {calls}"


def test_wherever_putting_back_was_cut_off_a_second_one_does_the_rest(pair: tuple[Host, Host]) -> None:
    before, after = pair
    whole = copy(after, "whole")
    calls = tool(whole.root, "put-back", *DPKG_OPTIONS)
    assert whole.content() == before.content()
    assert calls > 8
    for number in range(1, calls + 1):
        host = copy(after, f"cut{number}")
        tool(host.root, "put-back", *DPKG_OPTIONS, cut=number)
        tool(host.root, "put-back", *DPKG_OPTIONS)
        assert host.content() == before.content(), f"cut off at call {number} of {calls}"


def test_wherever_forgetting_was_cut_off_a_host_goes_back_as_a_whole_or_keeps_the_change(
    pair: tuple[Host, Host],
) -> None:
    before, after = pair
    whole = copy(after, "whole")
    for number in range(1, tool(whole.root, "forget") + 1):
        host = copy(after, f"cut{number}")
        tool(host.root, "forget", cut=number)
        tool(host.root, "put-back", *DPKG_OPTIONS)
        assert host.content() in (before.content(), whole.content()), f"cut off at call {number}"

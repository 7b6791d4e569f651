"""The role's own tool, cut off in the middle: the next one does the rest, and no host is half of each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from .trees import ANSIBLE, CONFIG, DPKG_OPTIONS, OTHER, SYSTEMCTL, TOOL_DIRECTORIES, Host, write

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
KILLERS = ("systemctl", "dpkg", "rm", "mv", "cp", "touch")
TOOL = ANSIBLE / "roles/dasec/files/before"
WHOLE = 0


def job(root: Path, *words: str, cut: int = WHOLE) -> int:
    """Runs the tool on a tree up to the call of this number; how many calls that change something it made."""
    killers = root.parent / "killers"
    for name in KILLERS:
        write(killers / name, KILLER, 0o755)
    write(killers / "at", f"{cut}\n")
    write(killers / "calls", "")
    path = f"{killers}:{root.parent / 'bin'}:{TOOL_DIRECTORIES}"
    command = ["sh", str(TOOL), words[0], str(root), *words[1:]]
    environment = {"PATH": path, "DASEC_TREE": str(root)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert cut or done.returncode == 0, done.stderr
    return len((killers / "calls").read_text().splitlines())


def shell(root: Path, *lines: str) -> None:
    """Commands on a tree."""
    environment = {"PATH": f"{root.parent / 'bin'}:{TOOL_DIRECTORIES}", "DASEC_TREE": str(root)}
    subprocess.run(
        ["sh", "-ec", "\n".join(lines)], env=environment, check=True, capture_output=True, cwd=root
    )


def bring(root: Path, package: Path, config: str) -> None:
    """What the role does up to its watch."""
    dpkg = f"dpkg --root={root}/ --force-confold {' '.join(DPKG_OPTIONS)} --install {package}"
    shell(root, f"cp {package} var/cache/dasec.deb", dpkg)
    write(root / "etc/dasec/dasec.toml", config)
    shell(root, "systemctl restart dasec", "systemctl enable dasec")


def remove(root: Path) -> None:
    shell(root, f"dpkg --root={root}/ {' '.join(DPKG_OPTIONS)} --remove dasec", "rm var/cache/dasec.deb")


@pytest.fixture(params=["upgrade", "installation", "removal"])
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, host: Host, old: Path, new: Path
) -> tuple[Host, Host]:
    """A host before a roll-out, and when that has come as far as its watch."""
    before, after = Host(tmp_path / "before/tree"), Host(tmp_path / "after/tree")
    if request.param == "installation":
        Host.bare(before.root)
    else:
        shutil.copytree(host.root, before.root)
    shutil.copytree(before.root, after.root)
    write(tmp_path / "after/bin/systemctl", SYSTEMCTL, 0o755)
    job(after.root, "take", "2.0")
    match request.param:
        case "upgrade":
            bring(after.root, new, OTHER)
        case "installation":
            bring(after.root, old, CONFIG)
        case _:
            remove(after.root)
    assert after.content() != before.content()
    return before, after


def copy(after: Host, number: int) -> Host:
    """A host that is as this one is."""
    return Host(shutil.copytree(after.root.parent, after.root.parent.with_name(f"copy{number}")) / "tree")


def test_wherever_putting_back_was_cut_off_a_second_one_does_the_rest(pair: tuple[Host, Host]) -> None:
    before, after = pair
    whole = copy(after, WHOLE)
    calls = job(whole.root, "put-back", *DPKG_OPTIONS)
    assert whole.content() == before.content()
    assert calls > 8
    for number in range(1, calls + 1):
        host = copy(after, number)
        job(host.root, "put-back", *DPKG_OPTIONS, cut=number)
        job(host.root, "put-back", *DPKG_OPTIONS)
        assert host.content() == before.content(), f"cut off at call {number} of {calls}"


def test_wherever_forgetting_was_cut_off_a_host_goes_back_as_a_whole_or_keeps_the_change(
    pair: tuple[Host, Host],
) -> None:
    before, after = pair
    whole = copy(after, WHOLE)
    for number in range(1, job(whole.root, "forget") + 1):
        host = copy(after, number)
        job(host.root, "forget", cut=number)
        job(host.root, "put-back", *DPKG_OPTIONS)
        assert host.content() in (before.content(), whole.content()), f"cut off at call {number}"

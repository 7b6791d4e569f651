"""The role has the form that others have, and says the same thing in each of its files."""

from __future__ import annotations

import re
import subprocess

from .trees import ANSIBLE, tool

ROLE = ANSIBLE / "roles/dasec"


def test_ansible_lint_passes_its_production_profile_without_the_network() -> None:
    command = [str(tool("ansible-lint")), "--offline", "--nocolor", "--strict", "--profile", "production"]
    done = subprocess.run(command, cwd=ANSIBLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Passed.*0 failure\(s\), 0 warning\(s\) in \d\d files", done.stdout + done.stderr)


def test_every_variable_of_the_role_has_a_default_and_a_description() -> None:
    defaults = set(re.findall(r"^(dasec_\w+):", (ROLE / "defaults/main.yml").read_text(), re.MULTILINE))
    described = set(
        re.findall(r"^      (dasec_\w+):", (ROLE / "meta/argument_specs.yml").read_text(), re.MULTILINE)
    )
    assert defaults == described
    assert len(defaults) >= 8

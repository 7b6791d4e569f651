"""Where the QEMU of the counted guests comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests.qemu import (
    FIRST_GOOD_MAJOR,
    Qemu,
    QemuMissingError,
    backports_line,
    kept_backport,
    major_version,
)

TARGETS = """http://mirror.invalid/debian/|bookworm|contrib
http://mirror.invalid/debian/|bookworm|main
http://mirror.invalid/debian/|bookworm-updates|main
"""


def test_backports_are_looked_for_where_the_distribution_comes_from() -> None:
    line = backports_line(TARGETS, "bookworm")
    assert line.startswith("deb [signed-by=/")
    assert line.endswith("] http://mirror.invalid/debian/ bookworm-backports main")


def test_a_machine_without_an_archive_is_told_in_one_line_what_to_install() -> None:
    with pytest.raises(QemuMissingError, match="install QEMU 10 or newer by hand") as caught:
        backports_line(TARGETS, "trixie")
    assert "\n" not in str(caught.value)


def test_what_is_no_qemu_is_refused_with_what_it_said(tmp_path: Path) -> None:
    other = tmp_path / "qemu-system-x86_64"
    other.write_text("#!/bin/sh\necho hello\n")
    other.chmod(0o755)
    with pytest.raises(QemuMissingError, match="'hello': no version in it"):
        major_version(Qemu(other))


def test_another_recipe_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept_backport("bookworm")
    assert kept_backport("trixie") != first
    monkeypatch.setattr("guests.qemu.FIRST_GOOD_MAJOR", FIRST_GOOD_MAJOR + 1)
    assert kept_backport("bookworm") != first


@pytest.mark.vm
def test_the_one_that_is_used_is_new_enough(qemu: Qemu) -> None:
    assert major_version(qemu) >= FIRST_GOOD_MAJOR

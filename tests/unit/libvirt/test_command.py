"""`dasec vm`: opting in and out, and what is said when it cannot be."""

from __future__ import annotations

import sys

import pytest

from dasec.commands.cli import main

DEFAULT = "test:///default"


def vm(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main(["vm", *arguments])
    return ended.value.code


@pytest.mark.libvirt
def test_a_domain_opts_in_and_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert vm("enable", "test", "--share", "2048", "--connect", DEFAULT) == 0
    assert capsys.readouterr().out == (
        "test: opted in with share 2048, as it runs and in its configuration\n"
    )
    assert vm("enable", "test", "--connect", DEFAULT) == 0
    assert "with the host's own share" in capsys.readouterr().out
    assert vm("disable", "test", "--connect", DEFAULT) == 0
    assert capsys.readouterr().out == "test: opted out, as it runs and in its configuration\n"


@pytest.mark.libvirt
def test_a_domain_that_does_not_exist_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert vm("enable", "nobody", "--connect", DEFAULT) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"dasec: {DEFAULT}: domain nobody: Domain not found")


@pytest.mark.libvirt
def test_a_libvirtd_that_does_not_answer_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    uri = "qemu:///system?socket=/nowhere/libvirt-sock"
    assert vm("disable", "a", "--connect", uri) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"dasec: {uri}: ")
    assert line.endswith("is libvirtd or virtqemud running, and may you use it?")


def test_without_the_binding_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    assert vm("enable", "a") == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "beside Debian's package of dasec install python3-libvirt" in line
    assert f"in the clone, `{sys.executable} -m pip install '.[libvirt]'` builds it" in line


@pytest.mark.parametrize("words", [("a\udcff",), ("a", "--connect", "test:///\udcff")])
def test_what_libvirt_cannot_be_told_is_one_line(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert vm("enable", "--connect", DEFAULT, *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("is not UTF-8, and libvirt has no other names")


@pytest.mark.parametrize("share", ["1", "262145", "much"])
def test_a_share_out_of_range_is_wrong_usage(share: str) -> None:
    assert vm("enable", "a", "--share", share) == 2

"""What the fake domains and those of libvirt's own test driver have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol
from xml.etree.ElementTree import fromstring

import pytest

from dasec.commands.vm import Domain, write
from dasec.workloads.libvirt.metadata import Consent, parse, render

from .fakelibvirt import FakeLibvirt, domain_xml

OTHERS = "<metadata><o:note xmlns:o='https://example.org/notes'>keep me</o:note></metadata>"


class LivingDomain(Domain, Protocol):
    """A virDomain, as far as both are one."""

    def name(self) -> str: ...
    def create(self) -> int: ...
    def destroy(self) -> int: ...
    def suspend(self) -> int: ...
    def resume(self) -> int: ...
    def undefine(self) -> int: ...
    def XMLDesc(self) -> str: ...


Define = Callable[[str], LivingDomain]


@pytest.fixture(params=["fake", pytest.param("test driver", marks=pytest.mark.libvirt)])
def define(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Define]:
    if request.param == "fake":
        yield FakeLibvirt(tmp_path).defineXML
        return
    import libvirt

    connection = libvirt.open("test:///default")
    yield connection.defineXML
    for domain in connection.listAllDomains():
        if domain.name() != "test":
            persistent = domain.isPersistent()
            if domain.isActive():
                domain.destroy()
            if persistent:
                domain.undefine()
    connection.close()


@pytest.fixture
def domain(define: Define) -> LivingDomain:
    return define(domain_xml("vm-a", kind="test", inside=OTHERS))


def said(domain: LivingDomain) -> Consent | None:
    return parse(fromstring(domain.XMLDesc()).find("metadata"))


def test_a_domain_did_not_opt_in_by_itself(domain: LivingDomain) -> None:
    assert said(domain) is None


@pytest.mark.parametrize("opt_in", [Consent(2048), Consent()])
def test_what_is_written_is_read(domain: LivingDomain, opt_in: Consent) -> None:
    assert write(domain, render(opt_in)) == "in its configuration"
    assert said(domain) == opt_in


def test_a_running_domain_gets_it_in_both_places(domain: LivingDomain) -> None:
    domain.create()
    assert write(domain, render(Consent(64))) == "as it runs and in its configuration"
    assert said(domain) == Consent(64)
    domain.destroy()
    assert said(domain) == Consent(64)


def test_opting_in_again_replaces_and_opting_out_is_harmless_to_repeat(domain: LivingDomain) -> None:
    write(domain, render(Consent(64)))
    write(domain, render(Consent(128)))
    assert said(domain) == Consent(128)
    write(domain, None)
    write(domain, None)
    assert said(domain) is None


def test_what_others_wrote_there_stays(domain: LivingDomain) -> None:
    write(domain, render(Consent(64)))
    assert "keep me" in domain.XMLDesc()
    write(domain, None)
    assert "keep me" in domain.XMLDesc()


def test_it_survives_the_life_of_the_domain(domain: LivingDomain) -> None:
    write(domain, render(Consent(64)))
    for step in (domain.create, domain.suspend, domain.resume, domain.destroy, domain.create):
        step()
        assert said(domain) == Consent(64)
    assert domain.isActive()


def test_undefined_as_it_runs_a_domain_lives_on_until_it_stops(domain: LivingDomain) -> None:
    domain.create()
    domain.undefine()
    assert (domain.isActive(), domain.isPersistent()) == (1, 0)
    assert write(domain, render(Consent(64))) == "as it runs"
    assert said(domain) == Consent(64)

"""An experiment file: TOML, checked whole before the first effect; every error at once, one line each."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import to_json

from dasec.config.complaints import Complaint, complaints_of, nearest
from dasec.config.config import ConfigError, check
from dasec.config.section import Section
from dasec.errors import Refusal
from dasec.lab.kit.arms import CONTROL, GUARDED, NONE, WATCHED, arms_for, has_daemon, policy_of
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.driver import DOCKER, Driver, WorkKind, WorkOrder
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.tree import NEUTRAL
from dasec.policies import POLICIES

from .file import Told, refusal
from .terms import Name, NameIfAny, Ratio

NAME_WANTED = "a name of small letters, digits and hyphens"


class WorkloadTable(Section):
    """Instances of one application."""

    driver: str = Field(description="the name of a driver (drivers/README.md)")
    name: NameIfAny = Field(default="", description=NAME_WANTED)
    threads: int = Field(default=2, ge=1, le=1024, description="threads of one instance, from 1 to 1024")
    count: int | None = Field(
        default=None, ge=1, le=1000, description="instances; without it, as many as make the ratio"
    )
    rate_per_s: float = Field(default=0, ge=0, le=1e7, description="requests of one instance a second")
    vcpus: tuple[str, ...] = Field(
        default=(), description="names of the threads that are vCPUs; without it, all are"
    )
    options: Mapping[str, str | int | float | bool] = Field(
        default={}, description="what its driver is told; drivers/README.md has the options"
    )

    @property
    def called(self) -> str:
        """Its own name, or its driver's."""
        return self.name or self.driver

    def order(self, name: str, rate_factor: float = 1.0) -> WorkOrder:
        """As its driver is asked, still without arrivals, times and a folder."""
        options = {key: _plain(value) for key, value in self.options.items()}
        return WorkOrder(name, self.threads, self.rate_per_s * rate_factor, 0, 0.0, 1.0, Path(), options)


def _plain(value: str | int | float | bool) -> str:
    """As a driver takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class MixTable(Section):
    """Workloads that share the host."""

    name: Name = Field(description=NAME_WANTED)
    workload: tuple[WorkloadTable, ...] = Field(min_length=1, description="at least one [[mix.workload]]")


class ArmTable(Section):
    """A policy with settings of its own."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9:=._-]*$", description=NAME_WANTED)
    settings: str = Field(description="lines of the daemon's configuration, without workloads")

    @model_validator(mode="after")
    def _are_settings(self) -> Self:
        told = configuration(self.name, [Managed("any", NEUTRAL, (1,))], self.settings)
        try:
            check(tomllib.loads(told), "settings")
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"settings: not TOML: {error}") from None
        except ConfigError as error:
            raise ValueError("; ".join(error.lines)) from None
        return self


class NeedsTable(Section):
    """What the host must have, or be, before anything runs."""

    cores: int = Field(default=1, ge=1, le=4096, description="cores, at least")
    load: float = Field(default=0.5, gt=0, le=10_000, description="the load average at the start, at most")
    drivers: tuple[str, ...] = Field(default=(), description="drivers without which nothing is run")


class Experiment(Section):
    """Everything that an experiment was asked to do; a folder of results belongs to one of these."""

    title: str = Field(min_length=1, description="a line for the report")
    source: str = Field(default="", description="where the claim stands, such as §6.1, Figure 7")
    claim: str = Field(default="", description="what is claimed, quoted")
    policies: tuple[str, ...] = Field(default=("critical",), description="policies beside the plain host")
    arm: tuple[ArmTable, ...] = Field(default=(), description="policies with settings: [[arm]]")
    layouts: tuple[Literal["flat", "vm", "shared"], ...] = Field(
        default=("vm",),
        min_length=1,
        description='"vm" (a group a vCPU in that of its workload), "flat", "shared", or several',
    )
    places: tuple[Literal["cgroup", "container", "docker", "guest"], ...] = Field(
        default=("cgroup",),
        min_length=1,
        description='"cgroup" (processes), "container" (of crun), "docker", "guest" (a VM), or several',
    )
    ratios: tuple[Ratio, ...] = Field(
        default=(1.0,), min_length=1, description="threads a core, such as [1, 2]"
    )
    rate_factors: tuple[Ratio, ...] = Field(default=(1.0,), min_length=1, description="factors of all rates")
    repetitions: int = Field(default=4, ge=1, le=1000, description="from 1 to 1000; 4 for a verdict")
    seconds: float = Field(
        default=5.0, ge=0.2, le=3600, description="the measured part of a run, 0.2 to 3600 s"
    )
    warmup_s: float = Field(default=2.0, ge=0, le=600, description="before it, from 0 to 600 s")
    seed: int = Field(default=1, ge=0, lt=2**31, description="of arrivals and orders")
    cores: int = Field(default=0, ge=0, le=4096, description="cores that ratios are of; 0: those of the host")
    blame: bool = Field(default=True, description="watch who waits for whom, in all arms alike")
    needs: NeedsTable = NeedsTable()
    mix: tuple[MixTable, ...] = Field(
        min_length=1, description="at least one [[mix]] with a [[mix.workload]]"
    )

    @property
    def arms(self) -> tuple[str, ...]:
        """The plain host, its control, and each policy."""
        return arms_for([*self.policies, *(arm.name for arm in self.arm)])

    @property
    def drivers(self) -> tuple[str, ...]:
        """All that are named."""
        return tuple(dict.fromkeys(one.driver for mix in self.mix for one in mix.workload))


def checked(raw: Told, path: Path, drivers: Mapping[str, Driver]) -> Experiment:
    """The experiment that `path` tells of. Refuses with every reason why it is none."""
    complaints = list(_between_keys(raw, drivers))
    try:
        experiment = Experiment.model_validate_json(to_json(raw, inf_nan_mode="constants"))
    except ValidationError as error:
        raise refusal(path, [*map(str, complaints_of(error, Experiment)), *map(str, complaints)]) from None
    complaints += [*_of_places(experiment), *_of_drivers(experiment, drivers)]
    if complaints:
        raise refusal(path, list(map(str, complaints)))
    return experiment


def _of_places(experiment: Experiment) -> Iterator[Complaint]:
    """What groups there can be where somebody else makes them."""
    other = next((one for one in experiment.layouts if one != GroupLayout.SHARED.value), None)
    if DOCKER in experiment.places and other:
        how = f'{DOCKER} has all threads of a container in one group: give ["{GroupLayout.SHARED}"]'
        yield Complaint("layouts", f"{other!r} is not in place {DOCKER!r}", how)


def _of_drivers(experiment: Experiment, drivers: Mapping[str, Driver]) -> Iterator[Complaint]:
    """What they say to what they are told."""
    for number, mix in enumerate(experiment.mix):
        for index, one in enumerate(mix.workload):
            driver = drivers.get(one.driver)
            where = f"mix[{number}].workload[{index}]"
            if driver and driver.kind is WorkKind.SERVICE and not one.rate_per_s:
                yield Complaint(
                    f"{where}.rate_per_s", "is missing", f"{one.driver} answers requests: give a rate"
                )
            try:
                if driver:
                    driver.critical(one.order(one.called))
            except Refusal as refusal:
                yield from (Complaint(f"{where}.options", line, "") for line in refusal.lines)


def _between_keys(raw: Mapping[str, object], drivers: Iterable[str]) -> Iterator[Complaint]:
    """What holds between keys, and names that must be known."""
    arms = [str(table.get("name")) for table in _tables(raw, "arm")]
    known = {*POLICIES, WATCHED}
    for number, name in enumerate(_words(raw.get("policies"))):
        if name.removesuffix(GUARDED) not in known and name != CONTROL:
            yield Complaint(f"policies[{number}]", f"no policy named {name!r}", nearest(name, known))
    for name in _twice([*arms, *_words(raw.get("policies"))]):
        yield Complaint("policies", f"{name!r} is there twice", "give each arm one name")
    for name in arms:
        if name in (NONE, CONTROL, WATCHED):
            yield Complaint("arm", f"{name!r} is the plain host", "give it another name")
        elif not has_daemon(name) or policy_of(name) != name:
            yield Complaint("arm", f"{name!r} is another arm's name", "give it another name")
    for name in _twice([str(mix.get("name")) for mix in _tables(raw, "mix")]):
        yield Complaint("mix", f"{name!r} is there twice", "give each mix one name")
    needs = raw.get("needs")
    wanted = _words(needs.get("drivers")) if isinstance(needs, Mapping) else ()
    for number, name in enumerate(wanted):
        if name not in drivers:
            yield Complaint(f"needs.drivers[{number}]", f"no driver named {name!r}", nearest(name, drivers))
    for number, mix in enumerate(_tables(raw, "mix")):
        yield from _in_mix(f"mix[{number}]", mix, drivers)


def _in_mix(where: str, mix: Mapping[str, object], drivers: Iterable[str]) -> Iterator[Complaint]:
    workloads = list(_tables(mix, "workload"))
    for number, workload in enumerate(workloads):
        driver = workload.get("driver")
        if isinstance(driver, str) and driver not in drivers:
            what = f"no driver named {driver!r}"
            yield Complaint(f"{where}.workload[{number}].driver", what, nearest(driver, drivers))
    for name in _twice([str(one.get("name") or one.get("driver")) for one in workloads]):
        yield Complaint(f"{where}.workload", f"{name!r} is there twice", "give each a name of its own")


def _tables(raw: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    found = raw.get(key)
    yield from (one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _twice(names: Iterable[str]) -> Iterator[str]:
    return (name for name, count in Counter(names).items() if count > 1)

"""A pod of Kubernetes as a workload that is yet to come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import Any

from ..reservations import Ask, CpuClass
from .fleet import Resident

CPU, CPUS = "dasec.io/cpu", "dasec.io/cpus"
"""Annotations of the pod: shared (as without), exclusive or whole, and how many CPUs (docs/containers.md)."""

SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(1000)}
"""Of a quantity (k8s.io/apimachinery, resource.Quantity), as far as one of CPUs has them."""


class BadPod(ValueError):
    """It is no pod, or says what cannot be; the text says what and where."""


def coming(pod: Mapping[str, Any]) -> Resident:
    """It is taken to use the CPUs that it requests, on as many vCPUs. Raises BadPod."""
    try:
        meta, spec = pod["metadata"], pod["spec"]
        name = f"{meta.get('namespace') or 'default'}/{meta['name']}"
        cores = requested(spec)
        containers = len(spec["containers"]) + sum(map(_is_sidecar, spec.get("initContainers") or ()))
        ask = _ask(name, meta.get("annotations") or {}, containers)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadPod(f"this is no pod: {type(error).__name__} {error}") from error
    return Resident(name, max(1, ceil(cores)), float(cores), 0.0, 0.0, ask)


def _ask(name: str, annotations: Mapping[str, str], containers: int) -> Ask | None:
    """What its containers will ask of the daemon, each for itself; None: they share."""
    word = annotations.get(CPU, CpuClass.SHARED)
    if word not in tuple(CpuClass):
        raise BadPod(f"{name}: annotation {CPU}: {word!r} is none of {', '.join(CpuClass)}")
    if word == CpuClass.SHARED:
        return None
    if CPUS not in annotations:
        raise BadPod(f"{name}: annotation {CPU}: {word} of how many? add {CPUS}")
    millicores = ceil(quantity(annotations[CPUS]) * 1000)
    if not millicores:
        raise BadPod(f"{name}: annotation {CPUS}: {word} of none: ask for more")
    return Ask(name, millicores * containers, CpuClass(word))


def requested(spec: Mapping[str, Any]) -> Fraction:
    """CPUs, as kube-scheduler counts them (k8s.io/component-helpers, PodRequests): all containers and
    sidecars, or an initial one and the sidecars that run by then if that is more; and the overhead."""
    sidecars = first = Fraction(0)
    for each in spec.get("initContainers") or ():
        first = max(first, sidecars + _request(each))
        sidecars += _request(each) if _is_sidecar(each) else 0
    together = sum(map(_request, spec["containers"]), sidecars)
    return max(together, first) + quantity((spec.get("overhead") or {}).get("cpu", 0))


def _is_sidecar(initial: Mapping[str, Any]) -> bool:
    """Does it go on beside the others, once it has started?"""
    return initial.get("restartPolicy") == "Always"


def _request(container: Mapping[str, Any]) -> Fraction:
    resources = container.get("resources") or {}
    return quantity((resources.get("requests") or {}).get("cpu", 0))


def quantity(said: object) -> Fraction:
    """A number of CPUs. Raises BadPod.

    >>> quantity("250m"), quantity(2), quantity("1.5")
    (Fraction(1, 4), Fraction(2, 1), Fraction(3, 2))
    """
    text = str(said)
    unit = SUFFIXES.get(text[-1:], Fraction(1))
    digits = text[:-1] if text[-1:] in SUFFIXES else text
    if not _is_number(digits.split(".")):
        raise BadPod(f"cpu: {text[:40]!r} is no quantity of CPUs: write it as 2 or 250m")
    return Fraction(digits) * unit


def _is_number(parts: Iterable[str]) -> bool:
    """At most 18 digits on each side of at most one point."""
    whole, *rest = parts
    return len(rest) < 2 and all(map(_is_digits, (whole, *rest)))


def _is_digits(part: str) -> bool:
    return 0 < len(part) < 19 and part.isascii() and part.isdigit()

"""What each key of a period's line must look like (docs/record.md).

A right checksum says that nobody changed a line by accident, not that a daemon wrote it. Behind this whoever
reads on may take numbers for numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

from ..model import Knob, Outcome, ThreadState

Check = Callable[[object], bool]


def wrong_key(line: object) -> str | None:
    """The first key that is missing or has a value of another form; "" for what is no object; None: all is as
    it should be."""
    if not isinstance(line, dict):
        return ""
    missing = (key for key in REQUIRED if key not in line)
    wrong = (key for key, check in SHAPES.items() if key in line and not check(line[key]))
    return next(chain(missing, wrong), None)


def _integer(value: object) -> bool:
    return type(value) is int


def _positive(value: object) -> bool:
    return type(value) is int and value > 0


def _number(value: object) -> bool:
    return type(value) is int or type(value) is float


def _text(value: object) -> bool:
    return type(value) is str


def _boolean(value: object) -> bool:
    return type(value) is bool


def _anything(value: object) -> bool:  # noqa: ARG001  # the interface of checks
    return True


def _one_of(words: type[Knob | Outcome | ThreadState]) -> Check:
    known = frozenset(str(word) for word in words)
    return lambda value: type(value) is str and value in known


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _every(check: Check) -> Check:
    return lambda value: type(value) is list and all(map(check, value))


def _by_name(check: Check) -> Check:
    return lambda value: type(value) is dict and all(map(check, value.values()))


def _row(*columns: Check, more: Check | None = None) -> Check:
    """A list with these columns and, if there may be `more`, any number of such."""

    def check(value: object) -> bool:
        if type(value) is not list or len(value) < len(columns):
            return False
        rest = value[len(columns) :]
        is_so = all(column(one) for column, one in zip(columns, value, strict=False))
        return is_so and (all(map(more, rest)) if more is not None else not rest)

    return check


def _fields(required: Mapping[str, Check], others: Mapping[str, Check]) -> Check:
    def check(value: object) -> bool:
        return (
            type(value) is dict
            and all(key in value and one(value[key]) for key, one in required.items())
            and all(one(value[key]) for key, one in others.items() if key in value)
        )

    return check


_ID = _row(_integer, _integer, _integer)
_INTEGERS = _every(_integer)
_INPUTS = _every(_row(_text, _integer))
_KNOB, _OUTCOME = _one_of(Knob), _one_of(Outcome)
_KNOBS = (_or_null(_integer), _or_null(_integer), _or_null(_INTEGERS))


def _vcpu(value: object) -> bool:
    return _integer(value) or _ID(value)


def _value(value: object) -> bool:
    return _integer(value) or _INTEGERS(value)


_WRITE = (_vcpu, _KNOB, _value, _value, _text, _OUTCOME)

_TOPOLOGY = _fields(
    {"cores": _INTEGERS}, dict.fromkeys(("nodes", "capacities", "wholes"), _every(_or_null(_integer)))
)
_WORKLOAD = _fields(
    {
        "name": _text,
        "share": _integer,
        "quota_cores": _or_null(_number),
        "vcpus": _every(_row(_integer, _integer, _integer, _text, _text)),
    },
    {"nested": _boolean, "emulators": _INTEGERS, "wish": _or_null(_row(_text, _integer))},
)
_USAGE = _row(
    *(_integer, _integer, _integer, _integer, _one_of(ThreadState), _integer),
    _every(_row(_vcpu, _integer)),
    more=_or_null(_integer),
)
_DECISION = _fields(
    {},
    {
        "knobs": _every(_row(_vcpu, *_KNOBS)),
        "reasons": _every(_row(_vcpu, _KNOB, _text, _INPUTS)),
        "caps": _every(_row(_vcpu, _integer)),
        "state": _by_name(_anything),
    },
)

REQUIRED = ("period", "clock_ns", "length_ns", "usage", "decision", "stages_ns")

SHAPES: Mapping[str, Check] = {
    "period": _integer,
    "clock_ns": _integer,
    "length_ns": _positive,
    "late_periods": _integer,
    "topology": _TOPOLOGY,
    "workloads": _every(_WORKLOAD),
    "usage": _every(_USAGE),
    "unjudged": _INTEGERS,
    "knobs": _every(_row(_integer, _or_null(_row(*_KNOBS)))),
    "cores": _every(_row(_integer, _or_null(_integer))),
    "limits": _by_name(
        _row(_integer, _integer, _integer, _every(_row(_vcpu, _integer, _integer, more=_integer)))
    ),
    "unwatched": _boolean,
    "decision": _DECISION,
    "results": _every(_row(*_WRITE, more=_text)),
    "violations": _every(_text),
    "held": _every(_row(*_WRITE, _text, _INPUTS, _integer, _integer)),
    "stages_ns": _by_name(_integer),
    "cpu_ns": _integer,
    "rest": _integer,
}
"""In the order in which they are reported."""

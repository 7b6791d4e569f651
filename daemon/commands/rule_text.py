"""What each rule means, in words for an operator; the numbers that it saw stand beside them."""

from __future__ import annotations

from ..policies import RULES


def meaning(rule: str) -> str:
    """The rule in words; its name alone where a record knows rules that we do not."""
    return f"{RULES[rule]} ({rule})" if rule in RULES else rule


def numbers(inputs: object) -> str:
    """The numbers that a rule saw: `consumed 80 ms, cores 2`."""
    assert isinstance(inputs, list | tuple)
    return ", ".join(_number(name, value) for name, value in inputs)


def _number(name: str, value: int) -> str:
    words = name.replace("_", " ")
    return (
        f"{words.removesuffix(' ns')} {milliseconds(value)}" if words.endswith(" ns") else f"{words} {value}"
    )


def milliseconds(value_ns: int) -> str:
    """`4 ms`, `0.35 ms`."""
    return f"{value_ns / 1e6:.3g} ms" if value_ns < 10**9 else f"{value_ns / 1e6:.0f} ms"

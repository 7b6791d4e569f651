"""The quota of the group that a thread is alone in, with its period: "16000 10000", "max 100000"."""

from __future__ import annotations

from ..bandwidth.rates import cap_of
from ..linux import bandwidth
from ..linux.cgroupfs import Hierarchy
from ..model import Knob, KnobValue
from .groups import GroupKnob
from .knob import NativeValue, no_value


class Quota(GroupKnob):
    """A rate of the model is a quota in the shortest period that can have it; none puts back what was there
    before us, quota and period."""

    serves = Knob.CAP
    put_back_by = 0

    def read_file(self, path: str) -> NativeValue:
        """See GroupKnob."""
        return bandwidth.read_quota(path)

    def write_file(self, path: str, value: NativeValue) -> None:
        """See GroupKnob."""
        if not isinstance(value, str):
            raise no_value(self, value)
        bandwidth.write_quota(path, value)

    def file_of(self, hierarchy: Hierarchy, group: str) -> str:
        """See GroupKnob."""
        return bandwidth.quota_file(hierarchy, group)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob."""
        assert isinstance(value, int), "millionths of a core"
        return "{} {}".format(*cap_of(value))

    def steps(self, present: NativeValue, new: NativeValue) -> tuple[NativeValue, ...]:
        """See NativeKnob. Another period first, without a quota, and then the quota: on v1 these are two
        writes, and the journal knows what lies between them."""
        period = str(new).partition(" ")[2]
        if str(present).partition(" ")[2] == period:
            return (new,)
        return f"{bandwidth.NO_QUOTA} {period}", new


QUOTA = Quota("quota")

"""The quota of the group that a thread is alone in, with its period: "16000 10000", "max 100000"."""

from __future__ import annotations

from collections.abc import Sequence

from ..bandwidth.rates import cap_of
from ..linux import bandwidth
from ..linux.cgroupfs import Hierarchy
from ..model import Knob, KnobValue
from .groups import GroupKnob
from .knob import KnobRef, NativeValue, no_value

V1_FILE = "cpu.cfs_quota_us"


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

    def half_written(
        self, ref: KnobRef, prior: NativeValue, ours: Sequence[NativeValue], present: NativeValue
    ) -> bool:
        """See NativeKnob. On v1 quota and period are two files."""
        if ref.path != V1_FILE:
            return False
        quota, _, period = str(present).partition(" ")
        if quota == bandwidth.NO_QUOTA:
            return period in {str(value).partition(" ")[2] for value in (prior, *ours)}
        return quota in {str(value).partition(" ")[0] for value in ours}

    def meant(self, prior: NativeValue, ours: Sequence[NativeValue], present: NativeValue) -> NativeValue:
        """See NativeKnob. Who writes a quota alone, as libvirt does, on v1 and on v2, leaves the period, and
        ours is a tenth of most: 50 ms of 100 would be five cores. More than one core limits nobody who is
        alone in a group, so it is not what somebody wrote with that period."""
        quota, _, period = str(present).partition(" ")
        before = str(prior).partition(" ")[2]
        is_ours = period != before and period in {str(value).partition(" ")[2] for value in ours}
        limits_nobody = quota == bandwidth.NO_QUOTA or bandwidth.cores_of(str(present)) > 1
        return f"{quota} {before}" if is_ours and limits_nobody else present


QUOTA = Quota("quota")

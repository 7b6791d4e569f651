"""Policies to compare with, for experiments: nothing at all, what an operator would do by hand, what somebody
could do who knew which threads matter, and the paper's rivals."""

from ..critical.oracle import Oracle, OracleParameters
from .bvt import Bvt, BvtParameters
from .none import Untouched
from .parties import Parties, PartiesParameters
from .static import Pinned, StaticPinning

__all__ = [
    "Bvt",
    "BvtParameters",
    "Oracle",
    "OracleParameters",
    "Parties",
    "PartiesParameters",
    "Pinned",
    "StaticPinning",
    "Untouched",
]

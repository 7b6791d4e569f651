"""Policies to compare with, for experiments: nothing at all, what an operator would do by hand, and what
somebody could do who knew which threads matter."""

from .none import Untouched
from .oracle import Oracle, OracleParameters
from .static import Pinned, StaticPinning

__all__ = ["Oracle", "OracleParameters", "Pinned", "StaticPinning", "Untouched"]

"""Policies to compare with, for experiments: nothing at all, and what an operator would do by hand."""

from .none import Untouched
from .static import Pinned, StaticPinning

__all__ = ["Pinned", "StaticPinning", "Untouched"]

"""The mainline host; see host.py."""

from ..threads.ahead import WriteAhead
from .host import Mainline

__all__ = ["Mainline", "WriteAhead"]

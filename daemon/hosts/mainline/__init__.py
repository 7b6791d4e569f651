"""The mainline host; see host.py."""

from .ahead import WriteAhead
from .host import Mainline
from .thread import OnForeignWrite

__all__ = ["Mainline", "OnForeignWrite", "WriteAhead"]

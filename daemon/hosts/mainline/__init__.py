"""The mainline host; see host.py."""

from ..threads.ahead import WriteAhead
from ..threads.thread import OnForeignWrite
from .host import Mainline

__all__ = ["Mainline", "OnForeignWrite", "WriteAhead"]

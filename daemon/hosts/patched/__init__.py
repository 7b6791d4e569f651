"""The host for a kernel with our patch; see host.py."""

from .host import PatchedCfs

__all__ = ["PatchedCfs"]

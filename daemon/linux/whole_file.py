"""A file that readers find whole, in its old or its new state, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from .sure_path import OpenPlace, place_of


def replace(path: Path, content: bytes) -> None:
    """All may read it, whatever our mask. Raises OSError, also where only a part had room; then `path` is
    as it was. Its directory may belong to somebody else: what he puts there is replaced, never written to."""
    with place_of(path) as place:
        new = _new(place)
        _remove(new)
        descriptor = new.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with contextlib.closing(os.fdopen(descriptor, "wb", buffering=0)) as file:
                os.fchmod(descriptor, 0o644)
                if file.write(content) != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.replace(new.name, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        except OSError:
            with contextlib.suppress(OSError):
                _remove(new)
            raise


def remove(path: Path) -> None:
    """Leave neither it nor what a replacement that was cut short has left. Raises OSError."""
    with place_of(path) as place:
        _remove(_new(place))
        _remove(place)


def _new(place: OpenPlace) -> OpenPlace:
    """Where the new state is written before it takes its place: a name of its own, so that what a killed
    daemon leaves is found by the next one. Whoever could foresee it owns the directory anyway."""
    return place.sibling(f"{place.name}.new")


def _remove(place: OpenPlace) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place.name, dir_fd=place.fd)

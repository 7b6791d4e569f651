"""An image without a registry: busybox in a tar, as `docker save` writes it; all engines take it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

IMAGE = "localhost/busy:1"
"""containerd keeps an image without a registry only under such a name."""

FOLDERS = ("bin", "dev", "etc", "proc", "run", "sys", "tmp")
APPLETS = ("sh", "sleep", "cat", "true")


def busybox() -> Path:
    """The one program in it."""
    return Path(shutil.which("busybox") or "/bin/busybox")


def write(to: Path) -> None:
    """The image, whose containers run a shell."""
    layer = _layer(busybox())
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "100000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(to, "w") as image:
        _add(image, "layer.tar", layer)
        _add(image, "config.json", json.dumps(config).encode())
        _add(image, "manifest.json", json.dumps(manifest).encode())


def _layer(program: Path) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as layer:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            layer.addfile(folder)
        _add(layer, "bin/busybox", program.read_bytes(), mode=0o755)
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
    return held.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    file = tarfile.TarInfo(name)
    file.size, file.mode = len(content), mode
    archive.addfile(file, io.BytesIO(content))

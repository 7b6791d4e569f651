"""Studies whose kept runs stand in pages: what makes tables and pictures of them."""

from __future__ import annotations

from importlib import import_module

PUBLISHED = "published.py"
"""In the folder of such a study; its function `publish` does it."""


def publish_study(name: str) -> None:
    """Tables on the terminal, pictures in their places."""
    import_module(f".{name}.{PUBLISHED.removesuffix('.py')}", __package__).publish()

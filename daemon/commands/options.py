"""Options that several commands have."""

from __future__ import annotations

import os
import stat

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class StateDirectory(click.Path):
    """A directory that may not be there yet. An empty name would be the current one, which no shell variable
    that is not set means."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Fails for an empty name, and where something else is."""
        if not os.fspath(value):
            self.fail("it is empty: name a directory.", param, ctx)
        try:
            other = not stat.S_ISDIR(os.stat(value).st_mode)
        except OSError as error:
            other = isinstance(error, NotADirectoryError)
        if other:
            self.fail(f"{os.fspath(value)!r} is not a directory.", param, ctx)
        return super().convert(value, param, ctx)

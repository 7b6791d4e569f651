"""Where the command `dasec` begins. Most of what a short command takes is loading: click alone takes twice as
long as `dasec explain` needs for its answer. So a plain call of that is answered without it; everything else,
and whatever is not plain, is click's (cli.py)."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

COMPLETION = "_DASEC_COMPLETE"
"""With this, a shell asks click what could follow."""

ELSEWHERE = "RUNTIME_DIRECTORY"
"""click checks the directory that this names."""


def main() -> None:
    """Run one command and exit with its status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name may hold what this terminal's encoding has not
    plain = None if {COMPLETION, ELSEWHERE} & os.environ.keys() else plain_explain(sys.argv[1:])
    if plain is None:
        from .cli import main as any_command

        any_command()
    else:
        sys.exit(_explain(*plain))


def plain_explain(arguments: Sequence[str]) -> tuple[str, str | None, bool] | None:
    """The workload, the record and whether it is to be JSON, if the arguments are `explain` and no more than
    these, each once; None of all others, right or wrong."""
    if not arguments or arguments[0] != "explain":
        return None
    workload, record, as_json = None, None, False
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--json" and not as_json:
            as_json = True
        elif argument == "--record" and record is None:
            record = next(rest, None)
            if not record:
                return None
        elif argument and workload is None and not argument.startswith("-"):
            workload = argument
        else:
            return None
    return None if workload is None else (workload, record, as_json)


def _explain(workload: str, record: str | None, as_json: bool) -> int:
    import time

    from ..errors import DIRECTORY, ExitStatus, Refusal
    from ..linux.printable import printable
    from .explain import answer

    try:
        print(answer(workload, record, DIRECTORY, time.monotonic_ns(), as_json=as_json), flush=True)
    except Refusal as refusal:
        for line in refusal.lines:
            print(printable(f"dasec: {line}"), file=sys.stderr)
        return refusal.status
    except KeyboardInterrupt:
        print("dasec: interrupted", file=sys.stderr)
        return ExitStatus.FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    return ExitStatus.DONE

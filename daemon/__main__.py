"""`python -m dasec` is the command `dasec`."""

from .commands.cli import main

main()

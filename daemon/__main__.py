"""`python -m dasec` is the command `dasec`."""

from .commands.entry import main

main()

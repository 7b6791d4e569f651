"""`python -m dasec` is the command `dasec`."""

from .cli import main

main()

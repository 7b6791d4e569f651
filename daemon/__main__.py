"""`python -m dasec` is the command `dasec`."""

from .entry import main

main()

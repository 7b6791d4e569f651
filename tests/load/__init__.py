"""The native load tool, run as the experiments run it."""

"""The kernel's knobs: a row for each kind, and one way to read and write them (docs/decisions/0060-knobs.md).

Import nothing heavy in here: the keeper process lives on these modules.
"""

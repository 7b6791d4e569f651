"""The journal: what every knob held before us, in a file that survives any end."""

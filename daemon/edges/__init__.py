"""Who wakes whom among the threads of a workload, and what it costs whoever waits; see reading.py."""

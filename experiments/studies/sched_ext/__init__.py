"""Our sched_ext scheduler beside EEVDF and its oracle, in deterministic guests."""

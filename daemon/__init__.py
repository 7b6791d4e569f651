"""DASEC: schedules the vCPUs of consolidated workloads so that interference misses their critical paths."""

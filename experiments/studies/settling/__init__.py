"""How soon weights follow a step of load under a budget, by the number of vCPUs: counted, not timed."""

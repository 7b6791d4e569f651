"""Who the vCPUs are."""

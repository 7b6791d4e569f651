"""CPU limits without stalls: those that nobody waits for are capped a little below the limit of all
(docs/bandwidth.md)."""

"""What measures: the demo, what the daemon costs, the load tool. Loop, service and hosts never import it."""

"""How one run is measured: what every experiment, the demo among them, is made of."""

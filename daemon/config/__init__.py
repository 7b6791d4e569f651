"""All that was told: the configuration file, checked whole, and the words of complaint."""

"""How pdj prints: JSON and YAML, tables, durations, the end of a log, and the explanation of `pdj why`."""

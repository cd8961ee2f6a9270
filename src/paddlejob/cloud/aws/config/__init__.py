"""cluster.yaml: its settings, their validation, and the assets directory it lives in. Nothing here calls AWS."""

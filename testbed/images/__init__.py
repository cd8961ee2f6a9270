"""Container images built without Docker, and the registry that serves them."""

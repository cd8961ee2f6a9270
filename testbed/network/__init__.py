"""Network namespaces, the bridge between them, and the way into them from loopback."""

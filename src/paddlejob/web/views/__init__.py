"""What the pages get: jobs, attempts, curves and machines as frozen dataclasses that become JSON."""

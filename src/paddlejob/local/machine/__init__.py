"""What this machine has and who holds it: resources, reservations, addresses, ports and processes."""

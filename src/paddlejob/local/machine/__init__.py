"""What this machine has, and which job holds it: resources, reservations, allocations, addresses and ports."""

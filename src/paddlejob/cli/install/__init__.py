"""Installing and removing the operator, and finding the operators that a cluster already has."""

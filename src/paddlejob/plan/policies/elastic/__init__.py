"""The size of an elastic job: it shrinks to what fits, and grows when there is room."""

"""Benchmarks: ratios against a floor or a peer in one run, never a timed test. Run one as `python -m bench.NAME`."""

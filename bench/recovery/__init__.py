"""Parts of bench/goodput.py: a paced training program, the engines that run it, and what a recovery is made of."""

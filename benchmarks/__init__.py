"""Measurements; ratios within one run are what counts, the machines that run this are noisy."""

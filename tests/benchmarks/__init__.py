"""Benchmarks: they print figures and assert nothing about time. `python -m tests.benchmarks GOAL|all`."""

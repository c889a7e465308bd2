"""Finished starts: database, baselines, comparison."""

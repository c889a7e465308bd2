"""Mutation testing of the analysis: ``python -m tools.mutants --help``, results in docs/mutants.md."""

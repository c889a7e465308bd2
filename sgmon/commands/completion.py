"""``sgmon completion SHELL``: a script that completes commands and options."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        help='source <(sgmon completion bash); eval "$(sgmon completion zsh)"; sgmon completion fish | source',
    )


def run(args: argparse.Namespace) -> int:
    """Never called: the command line, which knows all parsers, prints the script."""
    raise NotImplementedError

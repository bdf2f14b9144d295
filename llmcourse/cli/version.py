"""`llmcourse version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import typer

import llmcourse


def version() -> None:
    """Print the versions of llmcourse, Python and torch."""
    try:
        torch = installed("torch")
    except PackageNotFoundError:
        torch = "missing"
    typer.echo(f"llmcourse {llmcourse.__version__} (Python {platform.python_version()}, torch {torch})")

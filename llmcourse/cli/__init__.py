"""The command line: one small module per command. Nothing here imports torch before a command needs it."""

from __future__ import annotations

from llmcourse.cli.app import app, main

__all__ = ["app", "main"]

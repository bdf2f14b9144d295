"""Where a prompt comes from: the command line, or whatever is piped in."""

from __future__ import annotations

import sys

import typer


def read_text(given: str | None, what: str) -> str:
    """The text of an argument; without one, or for "-", all of stdin as UTF-8, less one line end at its end.

    Raises BadParameter when there is none, or stdin is not UTF-8.
    """
    if given is None and sys.stdin.isatty():
        raise typer.BadParameter("there is none; write it after the command, or pipe it in", param_hint=what)
    text = _piped(what) if given in (None, "-") else given
    if not text:
        raise typer.BadParameter("it is empty", param_hint=what)
    return text


def unescape(text: str) -> str:
    r"""Turn \n, \t and \\ as typed in a shell into the characters that they stand for."""
    return "\\".join(part.replace("\\n", "\n").replace("\\t", "\t") for part in text.split("\\\\"))


def _piped(what: str) -> str:
    data = sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8-sig")  # Windows shells may put a byte order mark first
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"what was piped in is not UTF-8 ({error})", param_hint=what) from error
    text = text.replace("\r\n", "\n")
    return text[:-1] if text.endswith("\n") else text

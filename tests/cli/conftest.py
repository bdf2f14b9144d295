"""Ways to run the command line: inside this process, or as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run a command in this process: `run("generate", "Hello", "--json")`."""
    from llmcourse.cli import app

    def run(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            app(list(arguments), prog_name="llmcourse")
        return Ran(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def piped(monkeypatch):
    """Put bytes on this process's stdin."""

    def pipe(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    return pipe


@pytest.fixture
def start():
    """Start a command as a process with pipes: `start("generate", "Hello")`; it is ended after the test."""
    processes = []

    def start(*arguments: str, python: tuple[str, ...] = ("-m", "llmcourse"), **settings) -> subprocess.Popen:
        # A console that is not UTF-8; and threads that do not spin while they wait (tests share their cores).
        ours = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "latin-1", "OMP_WAIT_POLICY": "passive"}
        process = subprocess.Popen(
            [sys.executable, *python, *arguments], env={**os.environ, **ours}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()

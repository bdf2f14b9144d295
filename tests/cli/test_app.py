"""What holds for every command: help, errors, exit codes, light imports."""

from __future__ import annotations

import sys

import pytest
import typer

import llmcourse
from llmcourse.cli.app import CourseGroup, app, with_folder
from llmcourse.errors import CourseError

OURS = ("generate", "tokenize", "bench", "doctor", "download")


def app_with(command) -> typer.Typer:
    """A program of one command (and one more, so that it stays a group)."""
    program = typer.Typer(cls=CourseGroup, pretty_exceptions_enable=False)
    program.command("go")(command)
    program.command("other")(lambda: None)
    return program


def raiser(error: BaseException):
    """A command that raises."""

    def command() -> None:
        raise error

    return command


def test_the_help_imports_nothing_heavy(start):
    code = (
        "import sys\nfrom llmcourse.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'transformers', 'nbformat', 'matplotlib', 'jupytext'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy), file=sys.stderr)"
    )
    out, err = start(code, python=("-c",)).communicate()
    assert b"generate" in out
    assert err.decode().strip() == "heavy: []"


def test_the_help_names_every_command_of_this_floor(run):
    ran = run("--help")
    assert ran.code == 0
    assert all(f" {name} " in ran.out for name in (*OURS, "version"))


def test_no_command_at_all_shows_the_help(run):
    assert run() == run("--help")


@pytest.mark.parametrize("command", OURS)
def test_the_help_of_a_command_has_examples(run, command):
    ran = run(command, "--help")
    assert ran.code == 0
    assert ran.out.split("Examples")[1].count(f"llmcourse {command}") >= 2


def test_python_dash_m_is_the_same_program(start, run):
    out, _ = start("version").communicate()
    assert out.decode() == run("version").out == run("--version").out
    assert out.decode().startswith(f"llmcourse {llmcourse.__version__} (Python {sys.version.split()[0]}, torch ")


def test_an_error_of_the_course_is_one_line_and_exit_code_1(start):
    process = start("generate", "Hello", "--model", "no-such-model")
    out, err = process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err.startswith(b"error: ")
    assert err.count(b"\n") == 1
    assert b"no-such-model" in err


@pytest.mark.parametrize(
    "arguments, named",
    [
        (("nonsense",), "nonsense"),
        (("generate", "x", "--wrong"), "--wrong"),
        (("generate", "x", "--max-tokens", "many"), "--max-tokens"),
        (("generate", "x", "--trace", "--json"), "--trace"),
        (("generate", "x", "--parts", "gold"), "'gold' is not one of auto, reference, cpu, fused, numba, numba-fast"),
        (("generate", "x", "--cache", "gold"), "'gold' is no cache; the forms are contiguous, none, paged"),
        (("generate", "x", "--raw", "--system", "y"), "--system"),
        (("generate", ""), "PROMPT"),
        (("tokenize", ""), "TEXT"),
        (("download",), "WHAT"),
        (("download", "everything"), "everything"),
        (("bench", "speed"), "speed"),
    ],
)
def test_wrong_usage_is_one_line_that_names_it_and_exit_code_2(run, arguments, named):
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert named in ran.err
    assert "--help)" in ran.err


def test_wrong_usage_points_to_the_help_of_its_command(run):
    assert "(see llmcourse generate --help)" in run("generate", "").err
    assert "(see llmcourse generate --help)" in run("generate", "x", "--wrong").err
    assert "(see llmcourse --help)" in run("nonsense").err


def test_an_unexpected_error_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        app_with(raiser(ZeroDivisionError()))(["go"])


@pytest.mark.parametrize(
    "error, code, said",
    [
        (CourseError("the reason, and the way out"), 1, "error: the reason, and the way out\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 1, "stopped\n"),
        (typer.Exit(3), 3, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_ends_a_command_early_gives_its_exit_code(capsys, error, code, said):
    with pytest.raises(SystemExit) as ended:
        app_with(raiser(error))(["go"])
    assert (ended.value.code, capsys.readouterr().err) == (code, said)


def test_the_course_commands_are_mounted():
    names = set(typer.main.get_command(app).commands)
    assert {"open", "reset", "check", "progress", "hint", "author", "grade"} <= names


@pytest.mark.parametrize(
    "typed, read",
    [
        (["generate", "Hi", "--mine"], ["generate", "Hi", "--mine="]),
        (["generate", "--mine", "Hi"], ["generate", "--mine=", "Hi"]),
        (["generate", "--mine", "labs", "Hi"], ["generate", "--mine=labs", "Hi"]),
        (["generate", "Hi", "--mine=labs"], ["generate", "Hi", "--mine=labs"]),
        (["generate", "Hi"], ["generate", "Hi"]),
    ],
)
def test_mine_takes_the_next_word_only_if_it_is_a_folder(monkeypatch, tmp_path, typed, read):
    (tmp_path / "labs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert with_folder(typed) == read


@pytest.mark.parametrize("words, given", [
    (["--mine", "/nosuch"], ["--mine=/nosuch"]), (["--mine", "./nosuch", "hi"], ["--mine=./nosuch", "hi"]),
    (["--mine", "What is a/b?"], ["--mine=", "What is a/b?"]), (["--mine", "/why is that so"], ["--mine=", "/why is that so"]),
    (["--mine"], ["--mine="]),
])
def test_a_path_after_mine_is_its_folder_whether_it_is_there_or_not(words, given):
    assert with_folder(["generate", *words]) == ["generate", *given]

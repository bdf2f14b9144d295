"""Set up llmcourse in .venv and start it. Needs nothing but Python 3.10 to 3.13.

    python3 start.py                  open the course in JupyterLab
    python3 start.py --no-browser …   the same; options go to JupyterLab (--port=9999, --ip=…)
    python3 start.py run ARGS…        llmcourse ARGS…, for example: run generate "Hello"
    python3 start.py test             all tests and all notebooks; `test ARGS…` gives ARGS to pytest and runs that alone
"""

# Old Pythons must be able to read this file to its end and say that they are too old: syntax of Python 3.6 only.
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "llmcourse-installed.json"  # what was installed; written when an install is complete
UNFINISHED = VENV / "llmcourse-unfinished"  # there while pip may be writing
LOG = VENV / "llmcourse-install.log"  # what pip complained about
OLDEST, NEWEST = (3, 10), (3, 13)
FIRST_LESSON = Path("notebooks") / "00_one_prompt.ipynb"
NOTEBOOK_FOLDERS = ("notebooks", "exercises", "solutions")
SIDE_BY_SIDE = "-n 2 --dist loadfile".split()
NBVAL = "--nbval-lax --nbval-current-env --nbval-cell-timeout=120".split()
TEST_DOWNLOADS = ("model", "text", "gpt2-vocab")
NEEDED_GB = 2.5  # without CUDA

DISK_FULL = (
    f"the disk of {ROOT} (or the folder for temporary files) is full: an install takes about {NEEDED_GB} GB, "
    "or 8 GB where PyTorch comes with CUDA; make room and start again"
)
NO_VENV = (
    "this Python has no venv or ensurepip module; on Debian or Ubuntu: "
    f"sudo apt install python3.{sys.version_info[1]}-venv; then start again"
)
NO_PERMISSION = f"no permission to write in {ROOT}; put this folder where you may write, and start again"
NO_NETWORK = (
    "cannot reach the package index: check the network (or the proxy, HTTPS_PROXY) and start again; "
    "docs/install.md says how to install without internet"
)
NO_TORCH = "there is no PyTorch for this machine (Macs need Apple silicon and macOS 14); see docs/install.md"
KNOWN_FAILURES = (  # what a program says when it fails, and our line for it; the first that fits counts
    (("No space left on device", "Errno 28", "Disk quota exceeded", "not enough space on the disk"), DISK_FULL),
    (("ensurepip is not available", "No module named ensurepip", "No module named venv"), NO_VENV),
    (("NewConnectionError", "NameResolutionError", "TimeoutError", "ProxyError", "SSLError", "ConnectionResetError",
      "IncompleteRead", "onnection broken", "Could not fetch URL"), NO_NETWORK),
    (("No matching distribution found for torch",), NO_TORCH),
    (("Errno 13", "Permission denied"), NO_PERMISSION),
)  # fmt: skip


class SetupFailed(Exception):
    """Set-up cannot go on; the message is one line that says why and what to do."""


def main(arguments):
    """Set up and start; returns the exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        say(__doc__.strip())
        return 0
    command, rest = open_lab, arguments
    if arguments and not arguments[0].startswith("-"):
        command, rest = {"run": run, "test": test}.get(arguments[0]), arguments[1:]
    if command is None:
        say(f"start.py knows `run` and `test`, not {arguments[0]!r}; perhaps: python3 start.py run {arguments[0]} …")
        return 2
    try:
        check_python()
        return command(rest)
    except SetupFailed as problem:
        say(f"start.py: {problem}")
        return 1
    except OSError as problem:
        say(f"start.py: {explain_os_error(problem)}")
        return 1
    except KeyboardInterrupt:
        say("\nstart.py: stopped; start it again to go on")
        return 130


def open_lab(options):
    """Open JupyterLab on the first lesson; `options` go to JupyterLab."""
    ensure_installed(["lab"])
    fetch("model")
    make_copies()
    # Not as an argument: JupyterLab would then show the lesson's folder and nothing beside it, neither labs nor work.
    here = ["--ServerApp.root_dir={}".format(ROOT)]
    if (ROOT / FIRST_LESSON).is_file():
        here.append("--LabApp.default_url=/lab/tree/{}".format(FIRST_LESSON.as_posix()))
    root_user = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    say("opening JupyterLab; Ctrl-C here ends it")
    return call([program("python"), "-m", "jupyterlab", *here, *root_user, *options], cwd=str(ROOT))


def run(arguments):
    """Run `llmcourse ARGUMENTS` in the current folder. Its exit code, stdin and stdout are passed on untouched."""
    ensure_installed(["lab"])
    if arguments[:1] != ["download"]:
        try:
            fetch("model")
        except SetupFailed as problem:  # commands that need no model still work
            say(f"start.py: {problem}")
    return call([program("llmcourse"), *arguments])


def test(arguments):
    """Run pytest over tests/ and nbval over the notebooks (or pytest with `arguments` alone)."""
    ensure_installed(["test"])
    for what in TEST_DOWNLOADS:
        fetch(what)
    pytest = [program("python"), "-m", "pytest"]
    if arguments:
        return call([*pytest, *arguments], cwd=str(ROOT))
    threads = str(max(1, (os.cpu_count() or 2) // 2))  # two runs side by side share the processor
    options = {"cwd": str(ROOT), "env": dict(os.environ, OMP_NUM_THREADS=threads)}
    code = call([*pytest, *SIDE_BY_SIDE, "tests"], **options)
    folders = [name for name in NOTEBOOK_FOLDERS if any((ROOT / name).glob("*.ipynb"))]
    if not folders:
        return code
    return call([*pytest, *SIDE_BY_SIDE, *NBVAL, *folders], **options) or code


def check_python(version=sys.version_info[:3], bits=64 if sys.maxsize > 2**32 else 32):
    """Raise SetupFailed unless this Python can install the course; the message names one that can."""
    if OLDEST <= tuple(version[:2]) <= NEWEST and bits == 64:
        return
    way = "install Python 3.12 (64-bit) and run: " + ("py -3.12" if os.name == "nt" else "python3.12")
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        if shutil.which(f"python3.{minor}"):
            way = f"run: python3.{minor}"
    this = f"this is Python {'.'.join(str(part) for part in version)} ({bits}-bit)"
    raise SetupFailed(f"{this}, and llmcourse needs Python 3.{OLDEST[1]} to 3.{NEWEST[1]} (64-bit); {way} start.py")


def ensure_installed(extras):
    """Make `.venv` hold the package with `extras`. Does nothing, quickly, when it already does."""
    have = read_stamp()
    if have.get("key") == install_key() and set(extras) <= set(have["extras"]) and base_python_exists():
        return
    reason = why_remake()
    if reason:
        say(f"making .venv again: {reason}")
        remove_venv()
    if not VENV.exists():
        make_venv()
    extras = sorted(set(extras) | set(have.get("extras", [])))
    pip_install(extras)
    STAMP.write_text(json.dumps({"key": install_key(), "extras": extras}), encoding="utf-8")
    UNFINISHED.unlink()


def install_key():
    """Hash of all that decides what is installed: dependencies, pins, Python, and this folder (it may be moved)."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {ROOT}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def read_stamp():
    """What the last complete install wrote, or {} where there is none."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if {"key", "extras"} <= set(stamp) else {}


def why_remake():
    """Why the present `.venv` cannot be used, or None where it can (or where there is none)."""
    if not os.path.lexists(str(VENV)):
        return None
    if UNFINISHED.exists():
        return "the last install did not finish"
    if not base_python_exists():
        return "its Python is gone"
    version = "import sys, pip; print(*sys.version_info[:2], sep='.')"
    probe = subprocess.run([str(program("python")), "-c", version], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if probe.returncode != 0:
        return "it is broken"
    made_with, this = probe.stdout.decode().strip(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    return None if made_with == this else f"it has Python {made_with}, and this is Python {this}"


def base_python_exists():
    """Whether the Python that `.venv` was made from is still there (`.venv` borrows its standard library)."""
    try:
        lines = (VENV / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    home = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"]
    return program("python").exists() and bool(home) and os.path.isdir(home[0])


def remove_venv():
    """Delete `.venv`, or say that something holds it."""
    try:
        if VENV.is_symlink() or VENV.is_file():
            VENV.unlink()
        else:
            shutil.rmtree(str(VENV))
    except OSError as problem:
        raise SetupFailed(f"cannot remove {VENV} ({problem.strerror}); close what uses it, or delete it by hand")


def make_venv():
    """Create `.venv` with the Python that runs this file."""
    if shutil.disk_usage(str(ROOT)).free < NEEDED_GB * 1e9:
        raise SetupFailed(DISK_FULL)
    say(f"making .venv with Python {sys.version.split()[0]}")
    python = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run([python, "-m", "venv", str(VENV)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        raise SetupFailed(explain("making .venv", made.stdout.decode(errors="replace")))


def pip_install(extras):
    """Install the package from this folder, editable, with `extras` and the tested versions."""
    say(f"installing llmcourse[{','.join(extras)}]; the first time this takes some minutes")
    UNFINISHED.touch()
    command = [
        str(program("python")), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
        "--constraint", str(ROOT / "constraints.txt"), "--editable", f"{ROOT}[{','.join(extras)}]",
    ]  # fmt: skip
    if not sys.stderr.isatty():
        command.append("--quiet")
    with open(str(LOG), "wb") as log:
        code = subprocess.call(command, stdout=sys.stderr, stderr=log, stdin=subprocess.DEVNULL, cwd=str(ROOT))
    if code != 0:
        line = explain(f"pip (all that it said is in {LOG})", LOG.read_text(encoding="utf-8", errors="replace"))
        if line in (NO_NETWORK, NO_TORCH):
            UNFINISHED.unlink()  # pip fetches everything before it writes anything: what was there is whole
        raise SetupFailed(line)


def explain(what, output):
    """One line for what a program said when it failed at `what`."""
    for signs, line in KNOWN_FAILURES:
        if any(sign in output for sign in signs):
            return line
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["it said nothing"]
    errors = [line for line in lines if line.upper().startswith("ERROR")] or lines
    return f"{what} failed: {errors[-1]}; once that is mended, start again"


def explain_os_error(problem):
    """One line for an error of the operating system in this file's own work."""
    if problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return DISK_FULL
    if isinstance(problem, PermissionError):
        return NO_PERMISSION
    return f"{problem}; if that stays, delete {VENV} and start again"


def fetch(what):
    """Have `llmcourse download WHAT` put it into the user's cache (quick and silent when it is there)."""
    if subprocess.call([str(program("llmcourse")), "download", what], stdout=subprocess.DEVNULL) != 0:
        way = f"python3 start.py run download {what} --from FILE"
        raise SetupFailed(f"could not fetch {what}; with a file that was fetched elsewhere: {way}")


def make_copies():
    """Put the learner's own copies of the labs into work/ (quick and silent where they are there and up to date)."""
    made = subprocess.run([str(program("llmcourse")), "open"], cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        lines = made.stdout.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        say("start.py: your copies of the labs could not be made ({}); the lessons open all the same".format(lines[-1]))


def call(command, **options):
    """Run a command to its end and return its exit code. Ctrl-C is for the command, which may end in its own way."""
    child = subprocess.Popen([str(part) for part in command], **options)
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code


def program(name):
    """A program of `.venv`: its Python, or one that was installed into it."""
    return VENV / "Scripts" / f"{name}.exe" if os.name == "nt" else VENV / "bin" / name


def say(text):
    """A line for the reader, on stderr: stdout belongs to the program that is started."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

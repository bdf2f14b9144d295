"""pyproject.toml, environment.yml, constraints.txt and the wheel say the same things.

Oracle: pyproject.toml, read as text (Python 3.10 has no tomllib), and what setuptools builds from it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"torch": "pytorch"}
PYTHONS = ("3.10.13", "3.11.7", "3.12.1", "3.13.0")
PLATFORMS = ("linux", "darwin", "win32")
EXTRAS = ("lab", "test", "serve", "gpu")


def requirements(name: str) -> list[Requirement]:
    """The requirements of one list of pyproject.toml, for example "dependencies" or "lab"."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{name} = (\[.*?\])$", text, re.MULTILINE | re.DOTALL)
    assert found, f"pyproject.toml has no list {name}"
    return [Requirement(line) for line in ast.literal_eval(found[1])]


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pins(python: str) -> dict[str, Requirement]:
    """The constraints that hold on one Python, by name; fails where a name is pinned twice."""
    environment = {"python_version": python.rpartition(".")[0], "python_full_version": python}
    held = [c for c in constraints() if c.marker is None or c.marker.evaluate(environment)]
    by_name = {canonicalize_name(c.name): c for c in held}
    assert len(by_name) == len(held), "two pins of one package hold at once"
    return by_name


def test_conda_and_pip_ask_for_the_same_packages():
    asked = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    conda = {str(Requirement(line)) for line in asked if isinstance(line, str)} - {"pip"}
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    python = re.search(r'^requires-python = "(.*)"$', text, re.MULTILINE)
    pip = {str(Requirement(f"python{python[1]}"))}
    for requirement in requirements("dependencies") + requirements("lab") + requirements("test"):
        if requirement.name != "llmcourse":
            pip.add(str(requirement).replace(requirement.name, CONDA_NAMES.get(requirement.name, requirement.name), 1))
    assert conda == pip


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_has_one_tested_version_within_its_range(python):
    pinned = pins(python)
    for name in ("dependencies", *EXTRAS):
        for requirement in requirements(name):
            if requirement.name == "llmcourse":
                continue
            assert canonicalize_name(requirement.name) in pinned, f"{requirement.name} has no tested version"
            (pin,) = pinned[canonicalize_name(requirement.name)].specifier
            assert pin.operator == "=="
            assert requirement.specifier.contains(pin.version), f"{requirement} does not admit the tested {pin.version}"


def test_constraints_are_of_the_kind_that_pip_accepts():
    for constraint in constraints():
        assert not constraint.extras and not constraint.url, f"pip refuses the constraint {constraint}"


def test_installed_packages_have_the_tested_versions_where_start_py_installed_them():
    import json
    import sys
    from importlib import metadata

    stamp = Path(sys.prefix) / "llmcourse-installed.json"
    if not stamp.exists():
        pytest.skip("this environment was not made by start.py")
    assert "test" in json.loads(stamp.read_text())["extras"]
    for name, pin in pins("{}.{}.{}".format(*sys.version_info)).items():
        try:
            version = metadata.version(name).partition("+")[0]  # torch's CPU builds carry "+cpu"
        except metadata.PackageNotFoundError:
            continue  # pinned for another platform or extra
        assert pin.specifier.contains(version), f"{name} is {version}, tested is {pin}"


def test_the_readme_says_which_pythons_and_both_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for promise in ("python3 start.py", "python3 start.py run generate", "3.10", "3.13", "docs/install.md"):
        assert promise in readme

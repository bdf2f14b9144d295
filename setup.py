"""What pyproject.toml cannot say: an installed package carries the labs, so that a learner needs no clone to check."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

COURSE_FILES = ("exercises/*.ipynb", "solutions/*.ipynb", "authoring/*/wrong.py")


class BuildWithLabs(build_py):
    """Copies the built labs into llmcourse/data/course of a wheel; an editable install reads them where they are."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        root = Path(__file__).parent
        for file in (f for pattern in COURSE_FILES for f in root.glob(pattern)):
            target = Path(self.build_lib, "llmcourse", "data", "course", file.relative_to(root))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


setup(cmdclass={"build_py": BuildWithLabs})

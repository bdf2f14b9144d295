"""`llmcourse generate`, with the real default model. Greedy runs are compared with an engine in this process: exact."""

from __future__ import annotations

import json
import re
import signal
import sys

import pytest

from llmcourse.engine.engine import Engine
from llmcourse.engine.sampling import SamplingParams
from llmcourse.errors import CourseError

QUESTION = "What is the capital of France?"
FIELDS = [
    "text", "prompt_ids", "output_ids", "finish_reason", "ttft_s", "itl_s", "tokens_per_s", "model", "device", "dtype",
]  # fmt: skip
NUMBERS = re.compile(
    r"\d+ prompt tokens? · \d+ output tokens? · TTFT [\d.,]+ ms · mean ITL [\d.,]+ ms · [\d.]+ tokens/s · "
    r"SmolLM2-135M-Instruct, float32, cpu"
)


@pytest.fixture(scope="module")
def engine(model, tokenizer):
    """The oracle: the same engine, without a command line."""
    return Engine(model, tokenizer=tokenizer)


@pytest.fixture(autouse=True)
def one_model(monkeypatch, model):
    """Runs in this process share the session's model (processes of their own load it as users do)."""
    monkeypatch.setattr("llmcourse.engine.engine.load_model", lambda _name, device, dtype, quant: model)


def greedy(run, *arguments: str) -> dict:
    """The JSON object of a greedy run."""
    ran = run("generate", *arguments, "--temperature", "0", "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_one_question_gives_the_documented_fields_and_a_true_answer(run, engine):
    fields = greedy(run, QUESTION)
    expected = engine.generate([{"role": "user", "content": QUESTION}], temperature=0)
    assert list(fields) == FIELDS
    assert "Paris" in fields["text"]
    assert {name: fields[name] for name in ("text", "prompt_ids", "output_ids", "finish_reason")} == {
        "text": expected.text, "prompt_ids": expected.prompt_ids, "output_ids": expected.output_ids,
        "finish_reason": "stop",
    }  # fmt: skip
    assert (fields["model"], fields["device"], fields["dtype"]) == ("SmolLM2-135M-Instruct", "cpu", "float32")


def test_the_times_of_the_json_object_fit_together(run):
    fields = greedy(run, QUESTION)
    n = len(fields["output_ids"])
    assert len(fields["itl_s"]) == n - 1
    assert min(fields["ttft_s"], *fields["itl_s"]) > 0
    # both sides are rounded: times to the microsecond, the rate to a thousandth
    assert fields["tokens_per_s"] == pytest.approx(n / (fields["ttft_s"] + sum(fields["itl_s"])), rel=1e-3)


def test_a_pipe_gets_only_text_and_the_numbers_go_to_stderr(start, engine):
    process = start("generate", QUESTION, "--temperature", "0", "--device", "cpu")
    out, err = process.communicate()
    assert process.returncode == 0
    assert out.decode().rstrip("\r\n") == engine.generate([{"role": "user", "content": QUESTION}], temperature=0).text
    assert NUMBERS.fullmatch(err.decode().strip())


def test_output_is_utf8_whatever_the_console_says(start):
    out, _ = start("tokenize", "½", "--json").communicate()
    assert "½" in json.loads(out.decode("utf-8"))["tokens"]


def test_raw_continues_the_text_itself(run, engine, tokenizer):
    fields = greedy(run, "The capital of France is", "--raw", "--max-tokens", "4")
    assert fields["prompt_ids"] == tokenizer.encode("The capital of France is")
    assert fields["output_ids"] == engine.generate("The capital of France is", temperature=0, max_tokens=4).output_ids
    assert fields["finish_reason"] == "length"


def test_a_system_message_comes_before_the_prompt(run, tokenizer):
    fields = greedy(run, "Hello", "--system", "Be brief.", "--max-tokens", "1")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert fields["prompt_ids"] == tokenizer.chat(messages)


@pytest.mark.parametrize("data", [b"one\ntwo", b"one\ntwo\n", b"\xef\xbb\xbfone\r\ntwo\r\n"])
@pytest.mark.parametrize("argument", [(), ("-",)])
def test_a_piped_prompt_loses_one_line_end_and_no_more(run, piped, tokenizer, data, argument):
    piped(data)
    assert greedy(run, *argument, "--raw", "--max-tokens", "1")["prompt_ids"] == tokenizer.encode("one\ntwo")


def test_a_piped_prompt_that_is_not_utf8_is_wrong_usage(run, piped):
    piped(b"caf\xe9")
    ran = run("generate")
    assert ran.code == 2
    assert "not UTF-8" in ran.err


def test_no_prompt_at_a_terminal_is_wrong_usage(run, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert run("generate").code == 2


def test_a_stop_string_may_be_a_line_end(run):
    whole = greedy(run, "1\n2\n3\n", "--raw", "--max-tokens", "4")["text"]
    assert "\n" in whole
    stopped = greedy(run, "1\n2\n3\n", "--raw", "--max-tokens", "4", "--stop", r"\n")
    assert (stopped["text"], stopped["finish_reason"]) == (whole[: whole.index("\n")], "stop")


def test_the_same_seed_draws_the_same_tokens(run):
    runs = []
    for seed in ("5", "5", "6"):
        ran = run("generate", "Once", "--raw", "--temperature", "1", "--max-tokens", "8", "--seed", seed, "--json")
        runs.append(json.loads(ran.out)["output_ids"])
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("option", [("--cache", "none"), ("--parts", "reference")])
def test_cache_and_parts_do_not_change_a_greedy_answer(run, option):
    arguments = ("The capital of France is", "--raw", "--max-tokens", "4")
    assert greedy(run, *arguments, *option)["output_ids"] == greedy(run, *arguments)["output_ids"]


def test_every_sampling_option_reaches_the_sampler(run, monkeypatch):
    seen = {}

    class Recorder:
        tokenizer = type("T", (), {"has_chat": False})

        def stream(self, prompt, params):
            seen.update(prompt=prompt, params=params)
            raise CourseError("seen enough")

    monkeypatch.setattr("llmcourse.cli.engine.make_engine", lambda *_: Recorder())
    options = (
        "--max-tokens 7 --temperature 0.5 --top-k 9 --top-p 0.8 --min-p 0.1 --repetition-penalty 1.3 --seed 4 "
        r"--ignore-eos --stop A --stop \n --stop \\n"
    )
    run("generate", "Hi", *options.split())
    assert seen["prompt"] == "Hi"
    assert seen["params"] == SamplingParams(
        max_tokens=7, temperature=0.5, top_k=9, top_p=0.8, min_p=0.1, repetition_penalty=1.3, seed=4, ignore_eos=True,
        stop=("A", "\n", "\\n"),
    )  # fmt: skip


def test_a_bad_sampling_value_is_named_before_any_model_is_looked_for(run):
    ran = run("generate", "Hi", "--top-p", "3", "--model", "no-such-model")
    assert ran.code == 1
    assert "top_p" in ran.err and "3.0" in ran.err


def interrupt_at(monkeypatch, step: int) -> None:
    """Press Ctrl-C in the given step of any engine."""
    original, count = Engine.step, iter(range(1, step + 1))

    def interrupted(self):
        if next(count) == step:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(Engine, "step", interrupted)


def test_ctrl_c_leaves_the_text_so_far_the_numbers_and_exit_code_130(run, monkeypatch, engine):
    expected = engine.generate("The capital of France is", temperature=0, max_tokens=3).text
    interrupt_at(monkeypatch, step=4)
    ran = run("generate", "The capital of France is", "--raw", "--temperature", "0")
    assert (ran.code, ran.out.rstrip("\n")) == (130, expected.rstrip("\n"))
    assert NUMBERS.match(ran.err)
    assert ran.err.endswith("stopped by Ctrl-C\n")


def test_ctrl_c_still_gives_a_json_object(run, monkeypatch):
    interrupt_at(monkeypatch, step=4)
    ran = run("generate", "The capital of France is", "--raw", "--json")
    fields = json.loads(ran.out)
    assert (ran.code, fields["finish_reason"], len(fields["output_ids"])) == (130, "cancelled", 3)


def test_ctrl_c_before_the_first_token_has_no_times(run, monkeypatch):
    interrupt_at(monkeypatch, step=1)
    fields = json.loads(run("generate", "The", "--raw", "--json").out)
    assert (fields["ttft_s"], fields["itl_s"], fields["tokens_per_s"], fields["text"]) == (None, [], 0.0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process on Windows")
def test_a_real_sigint_in_the_middle_of_a_stream_ends_it_cleanly(start, engine):
    options = "--raw --temperature 0 --max-tokens 4000 --device cpu --ignore-eos"
    process = start("generate", "Once upon a time", *options.split(), bufsize=0)
    begun = b""
    while len(begun) < 40:
        begun += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    text = (begun + out).decode().rstrip("\n")
    n = int(re.search(r"(\d+) output", err.decode()).group(1))
    assert process.returncode == 130
    assert err.decode().count("\n") == 1 and err.decode().endswith("stopped by Ctrl-C\n")
    oracle = engine.generate("Once upon a time", temperature=0, max_tokens=n, ignore_eos=True).text
    assert text and oracle.startswith(text)


def test_a_reader_that_goes_away_ends_it_quietly(start):
    process = start("generate", "Once upon a time", "--raw", "--max-tokens", "200", "--ignore-eos", bufsize=0)
    process.stdout.read(1)
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, b"")


def test_a_reader_that_was_never_there_is_no_error_to_talk_about(start):
    process = start("tokenize", "one two three")
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"Error" not in err and b"Exception" not in err

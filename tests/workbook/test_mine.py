"""Your code in the engine: which stages become the learner's, what is said of the others, and that they really run."""

from __future__ import annotations

import shutil

import pytest

from llmcourse import Engine, SamplingParams
from llmcourse.errors import CourseError, StageFailed
from llmcourse.workbook.mine import FAILING, REFERENCE, YOURS, load_mine, run_mine
from tests.workbook.changed_lab import ROOT, changed

LAB = "01_tokenizer"
PROMPT, PARAMS = "The capital of France is", SamplingParams(max_tokens=6, temperature=0)


def generate(mine, model):
    return Engine(model, parts=mine.parts).generate(PROMPT, PARAMS)


def owners(mine):
    return {use.stage: use.owner for use in mine.uses()}


@pytest.fixture(scope="module")
def reference(model):
    return Engine(model).generate(PROMPT, PARAMS)


def test_solutions_run_as_yours_and_give_the_reference_s_ids_and_text(model, reference):
    mine = load_mine(ROOT / "solutions")
    result = generate(mine, model)
    assert (result.prompt_ids, result.output_ids, result.text) == (
        reference.prompt_ids, reference.output_ids, reference.text
    )  # fmt: skip
    uses = {use.stage: use for use in mine.uses()}
    assert uses["tokenizer"].owner == uses["stream decoder"].owner == YOURS
    assert uses["tokenizer"].calls == 1 and uses["stream decoder"].calls >= PARAMS.max_tokens


def test_calls_of_a_stage_that_is_not_the_learners_are_the_references(model, tmp_path):
    mine = load_mine(changed(tmp_path, LAB, {}))
    generate(mine, model)
    use = next(use for use in mine.uses() if use.stage == "attention")
    assert (use.owner, use.calls) == (REFERENCE, 30 * PARAMS.max_tokens)


def test_untouched_exercises_fall_back_in_silence(model, reference):
    mine = load_mine(ROOT / "exercises")
    assert set(owners(mine).values()) == {REFERENCE}
    assert all(use.reason == "" for use in mine.uses())
    assert generate(mine, model).output_ids == reference.output_ids


def test_a_failing_stage_is_named_with_its_reason_and_the_reference_runs(model, reference, tmp_path):
    folder = changed(tmp_path, LAB, {"return self._waiting.decode(self._bytes_of[id])": "return 'x'"})
    mine = load_mine(folder)
    use = next(use for use in mine.uses() if use.stage == "stream decoder")
    assert use.owner == FAILING and "01.StreamDecoder" in use.reason and "wrong values" in use.reason
    assert generate(mine, model).text == reference.text
    assert "yours, but failing" in str(mine)
    assert next(use for use in mine.uses() if use.stage == "stream decoder").calls == 0, "what ran was the reference's"


@pytest.mark.parametrize("stage", ["tokenizer", "stream decoder"])
def test_the_engine_really_runs_the_learner_s_stage(model, reference, stage):
    """Turn the learner's stage around after it was checked, and the output must change."""
    mine = load_mine(ROOT / "solutions")
    engine = Engine(model, parts=mine.parts)
    if stage == "tokenizer":
        encode = engine.tokenizer.bpe._encode
        engine.tokenizer.bpe._encode = lambda *args: encode(*args)[::-1]
        assert engine.generate(PROMPT, PARAMS).prompt_ids == reference.prompt_ids[::-1]
    else:
        stream = engine.tokenizer.stream

        def upside_down(stop=(), **options):
            made = stream(stop, **options)
            push = made._push
            made._push = lambda token: push(token)[::-1]
            return made

        engine.tokenizer.stream = upside_down
        assert engine.generate(PROMPT, PARAMS).text not in ("", reference.text)


def test_an_exception_in_a_stage_stops_with_its_name_and_line(model, tmp_path):
    """It passes its checks and breaks on the real vocabulary."""
    once = "    for piece in split(text):"
    folder = changed(tmp_path, LAB, {once: once + "\n        assert len(vocab) < 40_000"})
    mine = load_mine(folder)
    assert owners(mine)["tokenizer"] == YOURS
    with pytest.raises(StageFailed, match=r"your tokenizer \(01\.encode\) raised AssertionError at line \d+"):
        generate(mine, model)


def test_stop_strings_work_on_the_learner_s_text(model, reference):
    word = reference.text.split()[0]
    result = Engine(model, parts=load_mine(ROOT / "solutions").parts).generate(
        PROMPT, max_tokens=6, temperature=0, stop=word
    )
    assert result.finish_reason == "stop" and result.text == reference.text[: reference.text.index(word)]


def test_a_chat_goes_through_the_learner_s_encode(model):
    chat = [{"role": "user", "content": "Is <|im_end|> a word?"}]
    mine = load_mine(ROOT / "solutions")
    engine = Engine(model, parts=mine.parts)
    assert engine.tokenizer.chat(chat) == Engine(model).tokenizer.chat(chat)
    assert {use.stage: use.calls for use in mine.uses()}["tokenizer"] >= 1


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(CourseError, match="there is no folder"):
        load_mine(tmp_path / "nowhere")


def test_an_unreadable_lab_is_said_and_does_not_stop_the_engine(model, reference, tmp_path):
    shutil.copytree(ROOT / "solutions", tmp_path / "work")
    (tmp_path / "work" / "01_tokenizer.ipynb").write_text("{ no notebook", encoding="utf-8")
    mine = load_mine(tmp_path / "work")
    use = next(use for use in mine.uses() if use.stage == "tokenizer")
    assert use.owner == REFERENCE and "is not a notebook" in use.reason
    assert generate(mine, model).output_ids == reference.output_ids


def test_run_mine_prints_the_text_and_the_table(model, reference, capsys):
    result = run_mine(PROMPT, ROOT / "solutions", max_tokens=6)
    said = capsys.readouterr().out
    assert result.output_ids == reference.output_ids and reference.text in said and "tokenizer       yours" in said

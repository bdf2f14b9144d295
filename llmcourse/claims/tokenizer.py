"""Statements of lesson 01."""

from __future__ import annotations

from collections.abc import Mapping

from .common import engine
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

ABOUT = 0.05  # "about 50,000" is met within this share
SAID_PIECES = 50_000
SAID_CUT = ("un", "happi", "ness")
SENTENCE, SAID_IDS = "How does inference work?", [2437, 1374, 32278, 670, 30]
DEARER = 1.5  # "more" means at least so many times as much
TODAY = ("Llama-2-7B", "Llama-3-8B", "Qwen3-8B")  # known_models.py has their vocabularies, and where those are published
FAR = "Greek"


@claim(
    "C01", "byte pair encoding merges common pairs until there are about 50,000 pieces",
    lessons=("01",), expected=f"all vocabularies looked at have {SAID_PIECES:,} tokens, within {ABOUT:.0%}",
    because=f"“about 50,000” names a size to one digit, which is good to half of it: {ABOUT:.0%}",
    how=f"vocabularies of GPT-2 and SmolLM2, counted; of {', '.join(TODAY)} as published",
)  # fmt: skip
def about_fifty_thousand_pieces() -> Found:
    from llmcourse.measure.known_models import MODELS

    counted = {name: each.vocab_size for name, each in _vocabularies().items()}
    return judge_sizes(counted | {name: MODELS[name].config.vocab_size for name in TODAY})


def judge_sizes(sizes: Mapping[str, int]) -> Found:
    """Holds where every vocabulary is about that large; with a correction where some are; fails where none is."""
    far = [name for name, size in sizes.items() if abs(size / SAID_PIECES - 1) > ABOUT]
    measured = ", ".join(f"{name} {size:,} tokens" for name, size in sizes.items())
    if not far:
        return Found(measured, HOLDS)
    why = f"not for {', '.join(far)}: the size is chosen, and today's are often larger"
    return Found(measured, CORRECTED if len(far) < len(sizes) else FAILS, why)


@claim(
    "C02", f"a rare word is split into known parts, such as {' + '.join(SAID_CUT)}",
    lessons=("01",), expected="GPT-2 or SmolLM2 cuts the word so",
    because="a cut is right or it is not; a word in one piece, or in single letters, would be no split into known parts",
    how=f"tokens of “{''.join(SAID_CUT)}” in both vocabularies",
)  # fmt: skip
def a_rare_word_is_split_into_parts() -> Found:
    word = "".join(SAID_CUT)
    return judge_cuts({name: tuple(each.tokens(each.encode(word))) for name, each in _vocabularies().items()})


def judge_cuts(cuts: Mapping[str, tuple[str, ...]]) -> Found:
    """Holds where a vocabulary cuts like the article; with a correction where it cuts elsewhere; fails where none cuts."""
    measured = ", ".join(f"{name} {' + '.join(cut)}" for name, cut in cuts.items())
    if SAID_CUT in cuts.values():
        return Found(measured, HOLDS)
    if all(len(cut) == 1 for cut in cuts.values()):
        return Found(measured, FAILS, "the word is one token")
    if all(len(part) == 1 for cut in cuts.values() for part in cut):
        return Found(measured, FAILS, "the word falls into letters")
    return Found(measured, CORRECTED, "it is split, but where counts say so, not where a word has its parts")


@claim(
    "C03", f"“{SENTENCE}” becomes the ids {SAID_IDS}",
    lessons=("01",), expected="GPT-2's vocabulary gives these ids, and they mean the sentence",
    because="ids are exact: one that differs is another text",
    how="GPT-2's ids of the sentence, and the printed ids as text",
)  # fmt: skip
def the_printed_ids() -> Found:
    gpt2 = _vocabularies()["GPT-2"]
    return judge_ids(gpt2.encode(SENTENCE), gpt2.decode(SAID_IDS))


def judge_ids(ids: list[int], printed_text: str) -> Found:
    """Holds where the ids are the printed ones; `printed_text` is what those mean."""
    if ids == SAID_IDS and printed_text == SENTENCE:
        return Found(str(ids), HOLDS)
    return Found(str(ids), FAILS, f"the printed ids mean “{printed_text}”")


@claim(
    "C04", "languages that are rare in the training data cost more tokens, and so more time",
    lessons=("01",), expected="the same sentence costs more tokens in every other language than in English, and in "
                              f"{FAR} at least {DEARER} times the tokens and {DEARER} times the time",
    because="half as much again is what a price list would call dearer, and more than the run-to-run noise of a time",
    how="default model, one sentence in many languages; the time in which as many tokens are generated, greedy",
)  # fmt: skip
def rare_languages_cost_more() -> Found:
    from llmcourse.workbook.languages import sentences

    n_tokens = {name: len(engine().tokenizer.encode(one.text)) for name, one in sentences().items()}
    return judge_costs(n_tokens, *(_seconds_to_write(n_tokens[name]) for name in ("English", FAR)))


def judge_costs(n_tokens: Mapping[str, int], english_s: float, far_s: float) -> Found:
    """Holds where all other languages need more tokens, and the far one clearly more tokens and time than English."""
    english, others = n_tokens["English"], {name: n for name, n in n_tokens.items() if name != "English"}
    price, wait = others[FAR] / english, far_s / english_s
    dearest = max(others, key=others.get)
    measured = (f"English {english} tokens, {dearest} {others[dearest]}, the most of {len(n_tokens)} languages; {FAR} "
                f"{others[FAR]} tokens ({price:.1f}×), written in {far_s:.1f} s against {english_s:.1f} s ({wait:.1f}×)")
    if price < DEARER or wait < DEARER:
        return Found(measured, FAILS, f"{FAR} is hardly dearer")
    cheap = [name for name, n in others.items() if n <= english]
    return Found(measured, CORRECTED, f"but not {', '.join(cheap)}") if cheap else Found(measured, HOLDS)


def _seconds_to_write(n: int) -> float:
    """Of n tokens after a short prompt; a few before it warm up."""
    prompt = engine().tokenizer.encode("My mother")
    _, run = (engine().generate(prompt, temperature=0, max_tokens=length, ignore_eos=True) for length in (2, n))
    return run.ttft_s + sum(run.itl_s)


def _vocabularies() -> dict[str, object]:
    from llmcourse import load_tokenizer

    return {"GPT-2": load_tokenizer("gpt2"), "SmolLM2": load_tokenizer()}

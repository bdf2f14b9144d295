"""Statements of lesson 06. Each verdict is a function of measured numbers, which the lesson calls with its own."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from llmcourse.measure.roofline import BITS_PER_BYTE, Placed, step_work

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

ANY_ID = 1
SHORT, LONG = 64, 4_000  # tokens of context
WRITTEN, EDGE = 128, 16  # tokens of a long output; gaps at its beginning and its end that are compared
HALF = 0.5  # of a step's time: who takes less is not what the step waits for
HARDLY_LONGER = 4**0.5  # for 4 tokens against 1: halfway, on a logarithmic scale, between as long and four times as long
GROWN = 1.1  # times the ITL
HIGH = 0.25  # of the arithmetic
BUSY = 0.75  # of the time, from which on a monitor would show a machine as busy


@claim(
    "C11", "prefill is compute-bound, decode memory-bound",
    lessons=("06",),
    expected="prefill: counted, it lies above the ridge point, and the arithmetic alone takes at least half of the "
             "measured time (MFU). Decode: counted, it lies below; 4 tokens in a step take less than √4 times as long "
             "as 1; and a step of a model with the same operator calls and hardly any weights takes at most half as long",
    because="what takes less than half of a step is not what it waits for: were it free, most of the time would stay. "
            "For decode, four times the arithmetic for the same bytes excludes arithmetic, and a hundredth of the bytes "
            "with the same calls tells memory from overhead. √4 is halfway, as factors go, between as long and four times as long",
    how="default model, steps of 1, 4 and 512 tokens, and of 1 in a model as deep and 64 wide, the median of three; "
        "this machine's kept ceilings",
)  # fmt: skip
def prefill_computes_and_decode_reads() -> Found:
    from llmcourse import Engine
    from llmcourse.measure.ceilings import ceilings
    from llmcourse.measure.thin import thin

    model = engine().model
    seconds = {n: _ttft(engine(), n) for n in (1, 4, 512)}
    return bound(seconds, _ttft(Engine(thin(model)), 1), ceilings(model.device, model.dtype), model)


def bound(seconds: dict[int, float], overhead: float, roof, model) -> Found:
    """Verdict of C11 from the times of steps of 1, 4 and 512 tokens, on a machine with these ceilings.

    overhead: seconds of a step of one token in a model that has the same operator calls, and hardly any weights.
    """
    bits = BITS_PER_BYTE * model.dtype.itemsize
    decode, prefill = (Placed(step_work(model.config, [(n, 0)], bits, bits), seconds[n], roof) for n in (1, 512))
    few, left = seconds[4] / seconds[1], overhead / seconds[1]
    measured = (
        f"{decode.work.intensity:.2f} and {prefill.work.intensity:.0f} FLOP per byte, ridge point {roof.ridge:.1f}; "
        f"prefill of 512: MFU {prefill.mfu:.0%}; decode: MBU {decode.mbu:.0%}, four tokens take {few:.1f} times as long "
        f"as one, without the weights {left:.0%} of the time is left"
    )
    lacks = []
    if prefill.bound != "compute" or prefill.mfu < HALF:
        lacks.append("less than half of a prefill is arithmetic")
    if decode.bound != "memory" or few > HARDLY_LONGER:
        lacks.append("a step of one token waits for arithmetic")
    if left > HALF:
        lacks.append("more than half of a step of one token is overhead, neither arithmetic nor memory")
    return Found(measured, FAILS if lacks else HOLDS, "; ".join(lacks))


@claim(
    "C12", "TTFT belongs to prefill and ITL to decode: long prompts hurt TTFT, long outputs and long contexts hurt ITL",
    lessons=("06",),
    expected=f"from {SHORT} to {LONG:,} tokens of prompt the TTFT at least doubles and the ITL grows by a tenth or more; "
             f"and over an output of {WRITTEN} tokens the ITL grows by a tenth or more as well",
    because="a wait that doubles is noticed; a tenth is above the noise of a median of gaps, and below the growth that "
            f"the bytes of {LONG:,} tokens of keys and values mean for this model, a third of its weights",
    how=f"default model, prompts of {SHORT} and {LONG:,} tokens, 16 output tokens; the first and the last {EDGE} gaps of "
        f"an output of {WRITTEN} tokens after {SHORT}; medians",
)  # fmt: skip
def prompts_hurt_ttft_and_context_itl() -> Found:
    ids = engine().tokenizer.encode(english())[:LONG]
    engine().generate(ids[:SHORT], temperature=0, max_tokens=2, ignore_eos=True)  # warm up
    short, long = (
        engine().generate(ids[:n], temperature=0, max_tokens=length, ignore_eos=True)
        for n, length in ((SHORT, WRITTEN + 1), (LONG, EDGE + 1))
    )  # fmt: skip
    first, last = edges(short.itl_s)
    return waits({SHORT: short.ttft_s, LONG: long.ttft_s}, {SHORT: first, LONG: median(long.itl_s)}, last / first)


def edges(gaps: Sequence[float]) -> tuple[float, float]:
    """Medians of the first and of the last gaps of an output, in seconds."""
    return median(gaps[:EDGE]), median(gaps[-EDGE:])


def waits(ttft: dict[int, float], itl: dict[int, float], grown: float) -> Found:
    """Verdict of C12 from TTFT and ITL in seconds, each by tokens of context, the short one first.

    grown: by what factor the ITL grew over a long output after the short prompt.
    """
    (few, many), (first, last) = ttft, itl.values()
    per_thousand = 1000 * (last - first) / (many - few) * 1000
    measured = (
        f"from {few:,} to {many:,} tokens: TTFT {1000 * ttft[few]:,.0f} to {1000 * ttft[many]:,.0f} ms, "
        f"ITL {1000 * first:.1f} to {1000 * last:.1f} ms; over an output of {WRITTEN} tokens the ITL grew {grown:.2f} times"
    )
    if not ttft[many] >= 2 * ttft[few]:
        return Found(measured, FAILS, "a longer prompt did not double the TTFT")
    if not last >= GROWN * first:
        return Found(measured, FAILS, "a longer context did not raise the ITL by a tenth")
    if grown >= GROWN:
        return Found(measured, HOLDS)
    return Found(
        measured, CORRECTED,
        f"a long output pays the ITL more often and does not raise it; the context does, by {per_thousand:.1f} ms for "
        f"1,000 tokens",
    )  # fmt: skip


@claim(
    "C26", "GPU utilization misleads: it is high in prefill and low in decode",
    lessons=("06",),
    expected=f"the share of the arithmetic that is used (MFU) is at least {HIGH:.0%} in prefill, and at most half of "
             f"that in decode",
    because=f"“high” is at least {HIGH:.0%}: under it most of the machine idles even in prefill; “low” is at most half "
            "of high. An engine that only sleeps has a far lower MFU in decode, since it brings one token for 512, but "
            "a high one nowhere",
    how="default model, prefill of 512 tokens and decode of 16; busy: the share of the time in which any stage of the "
        "engine was computing, as monitoring tools count it",
)  # fmt: skip
def utilization_misleads() -> Found:
    from llmcourse import Engine
    from llmcourse.measure.ceilings import ceilings
    from llmcourse.measure.trace import record, watched

    model, ids = engine().model, engine().tokenizer.encode(english())[:512]
    parts, busy = watched(engine().parts, model.device)
    seen = Engine(model, parts)
    record(seen, ids[:64], 2)  # warm up
    ran, bits = record(seen, ids, 17, busy), BITS_PER_BYTE * model.dtype.itemsize
    placed, shares = {}, {}
    for name, steps in (("prefill", ran.prefill), ("decode", ran.decode)):
        middle = sorted(steps, key=lambda step: step.seconds)[len(steps) // 2]
        work = step_work(model.config, [(middle.n_tokens, middle.n_past)], bits, bits)
        placed[name] = Placed(work, middle.seconds, ceilings(model.device, model.dtype))
        shares[name] = sum(step.busy_s for step in steps) / sum(step.seconds for step in steps)
    return misleading(shares, {name: one.mfu for name, one in placed.items()})


def misleading(busy: dict[str, float], mfu: dict[str, float]) -> Found:
    """Verdict of C26 from the shares of "prefill" and "decode": of the time that was busy, of the arithmetic used."""
    measured = (
        f"busy {busy['prefill']:.0%} of the time in prefill and {busy['decode']:.0%} in decode; "
        f"MFU {mfu['prefill']:.0%} and {mfu['decode']:.0%}"
    )
    if not mfu["prefill"] >= HIGH:
        return Found(measured, FAILS, "prefill did not use much of the arithmetic either")
    if mfu["prefill"] < 2 * mfu["decode"]:
        return Found(measured, FAILS, "prefill did not use twice the arithmetic that decode used")
    if min(busy.values()) < BUSY:
        return Found(measured, HOLDS)
    why = "what tools show as utilization is busy time, high in both; MFU is what falls in decode"
    return Found(measured, CORRECTED, why)


def _ttft(engine, n: int) -> float:
    """Seconds of a step over n tokens: the median of three after a warm-up."""
    runs = [engine.generate([ANY_ID] * n, temperature=0, max_tokens=1, ignore_eos=True).ttft_s for _ in range(4)]
    return median(runs[1:])

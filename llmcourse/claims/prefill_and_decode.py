"""Statements of lesson 06. Each verdict is a function of measured numbers, which the lesson calls with its own."""

from __future__ import annotations

from statistics import median

from llmcourse.measure.roofline import BITS_PER_BYTE, Placed, step_work

from .common import engine, english
from .ledger import CORRECTED, FAILS, HOLDS, Found, claim

SHORT, LONG = 64, 4_000  # tokens of context
# A step that waits for memory takes as long with k times the tokens, one that waits for arithmetic k times as long. Halfway
# between 1 and k, on a logarithmic scale, stands √k: for 4 tokens against 1, and for 512 against 64.
HARDLY_LONGER, MUCH_LONGER = 4**0.5, 8**0.5
BUSY = 0.75


@claim(
    "C11", "prefill is compute-bound, decode memory-bound",
    lessons=("06",),
    expected="counted, prefill lies above the ridge point and decode below it; measured, 4 tokens in a step take less than "
             "√4 times as long as 1 (halfway from equally long to in proportion), and 512 more than √8 times as long as 64",
    how="default model, steps of 1, 4, 64 and 512 tokens, the median of three; this machine's kept ceilings",
)  # fmt: skip
def prefill_computes_and_decode_reads() -> Found:
    from llmcourse.measure.ceilings import ceilings

    seconds = {n: _ttft(n) for n in (1, 4, 64, 512)}
    return bound(seconds, ceilings(engine().model.device, engine().model.dtype), engine().model)


def bound(seconds: dict[int, float], roof, model) -> Found:
    """Verdict of C11 from the times of steps of 1, 4, 64 and 512 tokens, on a machine with these ceilings."""
    bits = BITS_PER_BYTE * model.dtype.itemsize
    decode, prefill = (Placed(step_work(model.config, [(n, 0)], bits, bits), seconds[n], roof) for n in (1, 512))
    few, many = seconds[4] / seconds[1], seconds[512] / seconds[64]
    measured = (
        f"{decode.work.intensity:.2f} and {prefill.work.intensity:.0f} FLOP per byte, ridge point {roof.ridge:.1f}; "
        f"four tokens take {few:.1f} times as long as one, 512 take {many:.1f} times as long as 64; MFU of prefill {prefill.mfu:.0%}, "
        f"MBU of decode {decode.mbu:.0%}"
    )
    lacks = []
    if prefill.bound != "compute" or many < MUCH_LONGER:
        lacks.append("a long step did not wait for arithmetic")
    if decode.bound != "memory" or few > HARDLY_LONGER:
        lacks.append("a step of one token did not wait for memory")
    return Found(measured, FAILS if lacks else HOLDS, " and ".join(lacks))


@claim(
    "C12", "TTFT belongs to prefill and ITL to decode: long prompts hurt TTFT, long outputs and long contexts hurt ITL",
    lessons=("06",),
    expected=f"from {SHORT} to {LONG:,} tokens of context the TTFT at least doubles and the ITL grows by a tenth or more",
    how=f"default model, prompts of {SHORT} and {LONG:,} tokens, 16 output tokens; the median gap",
)  # fmt: skip
def prompts_hurt_ttft_and_context_itl() -> Found:
    ids = engine().tokenizer.encode(english())[:LONG]
    engine().generate(ids[:SHORT], temperature=0, max_tokens=2, ignore_eos=True)  # warm up
    short, long = (
        engine().generate(ids[:n], temperature=0, max_tokens=17, ignore_eos=True) for n in (SHORT, LONG)
    )  # fmt: skip
    return waits({SHORT: short.ttft_s, LONG: long.ttft_s}, {SHORT: median(short.itl_s), LONG: median(long.itl_s)})


def waits(ttft: dict[int, float], itl: dict[int, float]) -> Found:
    """Verdict of C12 from TTFT and ITL in seconds, each by tokens of context, the short one first."""
    (few, many), (first, last) = ttft, itl.values()
    per_thousand = 1000 * (last - first) / (many - few) * 1000
    measured = (
        f"from {few:,} to {many:,} tokens: TTFT {1000 * ttft[few]:,.0f} to {1000 * ttft[many]:,.0f} ms, "
        f"ITL {1000 * first:.1f} to {1000 * last:.1f} ms"
    )
    if ttft[many] < 2 * ttft[few]:
        return Found(measured, FAILS, "a longer prompt did not double the TTFT")
    if last < 1.1 * first:
        return Found(measured, FAILS, "a longer context did not raise the ITL by a tenth")
    return Found(
        measured, CORRECTED,
        f"a long output pays the ITL more often; what raises it is the context, by {per_thousand:.1f} ms for 1,000 tokens, "
        "whoever wrote them",
    )  # fmt: skip


@claim(
    "C26", "GPU utilization misleads: it is high in prefill and low in decode",
    lessons=("06",),
    expected="the share of the arithmetic that is used (MFU) is at least twice as high in prefill as in decode",
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
    if mfu["prefill"] < 2 * mfu["decode"]:
        return Found(measured, FAILS, "prefill did not use twice the arithmetic that decode used")
    if min(busy.values()) < BUSY:
        return Found(measured, HOLDS)
    why = "what tools show as utilization is busy time, high in both; MFU is what falls in decode"
    return Found(measured, CORRECTED, why)


def _ttft(n: int) -> float:
    """Seconds of a step over n tokens: the median of three after a warm-up."""
    ids = engine().tokenizer.encode(english())[:n]
    runs = [engine().generate(ids, temperature=0, max_tokens=1).ttft_s for _ in range(4)]
    return median(runs[1:])

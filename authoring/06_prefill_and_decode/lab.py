# %% [markdown]
# # Lab 06 · Count first, then measure
# Four exercises, about an hour. At the end your formulas stand beside a recording of the real engine at work on this
# machine, step by step.
#
# | letter or word | meaning |
# |---|---|
# | n | tokens that go through the model in one step |
# | T | tokens so far: those of earlier steps and these n |
# | V, d | vocabulary, width |
# | L, f | layers, feed-forward width |
# | Hq, Hkv, D | query heads, key/value heads, head size |
# | FLOP | one floating point operation; a multiply-add is two |
# | bandwidth | bytes that the machine can move in a second |
# | TTFT, ITL | time to first token; time from one token to the next |

# %%
from statistics import median

from llmcourse import Engine
from llmcourse.measure.ceilings import ceilings
from llmcourse.measure.trace import record
from llmcourse.text.corpus import speeches
from llmcourse.workbook import check, hint, plots, your_code

# %% [markdown]
# A model's sizes come in a `config`. These fields are all that you need:
#
# | field | is | | field | is |
# |---|---|---|---|---|
# | `vocab_size` | V | | `n_heads` | Hq |
# | `width` | d | | `n_kv_heads` | Hkv |
# | `n_layers` | L | | `head_dim` | D (not always d ÷ Hq) |
# | `ffn_width` | f | | `tied` | True where the output head *is* the embedding table |
#
# And this is what the weights of the model are, each named with its shape:
#
#     embedding table [V, d]     one row is looked up for each token; not multiplied
#     in each of L layers:
#         norm [d]
#         query [Hq·D, d]  key [Hkv·D, d]  value [Hkv·D, d]  output [d, Hq·D]
#         norm [d]
#         gate [f, d]  up [f, d]  down [d, f]
#     norm [d]
#     output head [V, d]         where `tied`: the embedding table itself, and no second one

# %%
# NBVAL_CHECK_OUTPUT
engine = Engine()
config = engine.model.config
print("V", config.vocab_size, " d", config.width, " L", config.n_layers, " f", config.ffn_width)
print("Hq", config.n_heads, " Hkv", config.n_kv_heads, " D", config.head_dim, " tied", config.tied)

# %% [markdown]
# ### 06.1 Operations of a step
# A step computes n tokens of one request, after `n_past` that are in the cache. How many operations is that? Count the
# matrix products; everything else together is less than a hundredth of them.
#
# *difficulty 3/5 · 20 minutes · unlocks: nothing in the engine; it tells you what to expect of it*

# %% ex="forward_flops"
def forward_flops(config, n_tokens: int, n_past: int) -> int:
    """Floating point operations of one step over one request.

    Args:
        config: the model's sizes (fields: see the table above).
        n_tokens: n ≥ 1, tokens that this step computes.
        n_past: ≥ 0, tokens whose keys and values are in the cache already.

    Returns the FLOPs of all matrix products, an int. A multiply-add counts as two. Counted are:
        - every linear weight of every layer, for each of the n tokens: query, key, value, output,
          gate, up, down. A matrix [o, i] is o · i multiply-adds for one token;
        - attention: every query meets its own key, the keys of the new tokens before it, and all
          n_past keys of the cache; later ones are never computed. For each such pair and each
          query head: D multiply-adds for the score, D more to add up the values;
        - the output head, for one row: only the last token's logits are wanted.
    Not counted: the look-up in the embedding table, norms, rotations, softmax, activations, sums.

    Example: V = 10, d = 4, L = 1, f = 6, Hq = 2, Hkv = 1, D = 3, two tokens after one:
    layer 2 · 2 · (4·6 + 4·3 + 4·3 + 6·4 + 3 · 4·6) = 576; pairs 2 + 3 = 5, attention
    4 · 2·3 · 5 = 120; head 2 · 10·4 = 80. Together 776.
    """
    ### BEGIN SOLUTION
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    weights = 2 * d * q + 2 * d * kv + 3 * d * config.ffn_width
    pairs = n_tokens * n_past + n_tokens * (n_tokens + 1) // 2
    layer = 2 * n_tokens * weights + 4 * q * pairs
    return config.n_layers * layer + 2 * config.vocab_size * d
    ### END SOLUTION

# %% check="forward_flops"
check("06.forward_flops", forward_flops=forward_flops)

# %% [markdown]
# ### 06.2 Bytes of a step
# The same step from the other side: what must be fetched from memory, or brought there? The processor's own caches hold
# the vectors that are being worked on, but neither the weights nor the KV cache.
#
# *difficulty 3/5 · 15 minutes · unlocks: nothing in the engine; lessons 08 and 09 live from this number*

# %% ex="forward_bytes"
def forward_bytes(config, n_tokens: int, n_past: int, weight_bits: float, kv_bits: float) -> float:
    """Bytes that one step over one request moves between memory and processor, at the least.

    Args:
        config: the model's sizes (fields: see the table above).
        n_tokens: n ≥ 1, tokens that this step computes.
        n_past: ≥ 0, tokens whose keys and values are in the cache already.
        weight_bits: bits of one weight. Eight bits are a byte.
        kv_bits: bits of one number in the cache; 0 without a cache.

    Returns the bytes, a float (half bytes exist). Counted are:
        - every weight of the listing above once for the whole step, however many tokens it has,
          norms included. Where `tied`, the table is read once, as the output head, and the look-up
          adds nothing. Where not, n rows of the embedding table come on top;
        - keys and values of all layers: those of the n_past tokens are read, those of the n new
          ones are written.
    Not counted: the vectors in between, and the logits.

    Example: V = 10, d = 4, L = 1, f = 6, Hq = 2, Hkv = 1, D = 3, tied, two tokens after one:
    weights 4·6 + 4·3 + 4·3 + 6·4 + 3 · 4·6 + 2·4 + 4 + 10·4 = 196, at 16 bits 392 bytes;
    3 tokens · 2 · 1·3 = 18 numbers in the cache, at 8 bits 18 bytes. Together 410.
    """
    ### BEGIN SOLUTION
    d, q, kv = config.width, config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    layer = 2 * d * q + 2 * d * kv + 3 * d * config.ffn_width + 2 * d
    rows = 0 if config.tied else n_tokens
    weights = config.n_layers * layer + d + config.vocab_size * d + rows * d
    kept = (n_past + n_tokens) * 2 * config.n_layers * kv
    return weights * weight_bits / 8 + kept * kv_bits / 8
    ### END SOLUTION

# %% check="forward_bytes"
check("06.forward_bytes", forward_bytes=forward_bytes)

# %% [markdown]
# Look at the quotient. A prompt of 512 tokens, and one token after it:

# %%
# NBVAL_CHECK_OUTPUT
with your_code():
    for n, past in [(512, 0), (1, 512)]:
        flops, moved = forward_flops(config, n, past), forward_bytes(config, n, past, 32, 32)
        print(f"n = {n:3}: {flops / 1e9:7.2f} GFLOP, {moved / 1e6:4.0f} MB, {flops / moved:6.1f} FLOP for each byte")

# %% [markdown]
# ### 06.3 The roofline
# Two numbers for the work, two for the machine. While one part of it computes, another already fetches what comes next.
#
# *difficulty 1/5 · 5 minutes · unlocks: nothing in the engine; it is the yardstick for all that follow*

# %% ex="roofline_seconds"
def roofline_seconds(flops: float, bytes: float, peak_flops: float, bandwidth: float) -> float:
    """The least time for a piece of work on a machine.

    Args:
        flops: operations of the work.
        bytes: bytes that it moves.
        peak_flops: operations that the machine computes in a second, > 0.
        bandwidth: bytes that it moves in a second, > 0.

    Returns seconds. Computing and moving go on at the same time, so the one that takes longer
    decides.

    Example: roofline_seconds(flops=100, bytes=40, peak_flops=50, bandwidth=10) == 4.0: computing
    takes 2 seconds, moving takes 4.
    """
    ### BEGIN SOLUTION
    return max(flops / peak_flops, bytes / bandwidth)
    ### END SOLUTION

# %% check="roofline_seconds"
check("06.roofline_seconds", roofline_seconds=roofline_seconds)

# %% [markdown]
# ### 06.4 What the user sees
# Now the clock. A request arrived, and its tokens came at certain times: sum that up in the figures that everyone who
# runs a model is asked for.
#
# Percentiles need a rule, since "95 % of 7 gaps" is not a whole number. Ours is numpy's: sort the m values; p percent
# stand at place (m − 1) · p ÷ 100, counted from 0; between two places, go along the straight line.
#
# *difficulty 3/5 · 20 minutes · unlocks: nothing in the engine; lessons 12 and 16 judge whole servers by it*

# %% ex="latency_summary"
def latency_summary(arrival: float, token_times: list[float]) -> dict[str, float]:
    """The latency figures of one request.

    Args:
        arrival: when the request arrived, in seconds on some clock. It need not be 0.
        token_times: when each of its k ≥ 1 tokens came, in seconds on the same clock, in order.

    Returns a dict, all in seconds but the last:
        ttft: time to first token, from the arrival.
        itl_mean, itl_p50, itl_p95, itl_p99: mean and percentiles of the k − 1 gaps between a token
            and the next. The wait for the first token is no gap. None, all four, for a single token.
        tokens_per_s: all k tokens over the time from the arrival to the last.
    A percentile p of m gaps: sort them; p stands at place (m − 1) · p / 100, counted from 0;
    between two places, interpolate linearly. Raises ValueError when there is no token.

    Example: latency_summary(10.0, [12.0, 12.5, 14.0, 14.25]): ttft 2.0; gaps 0.5, 1.5, 0.25 with
    the mean 0.75, itl_p50 0.5, itl_p95 0.5 + 0.9 · (1.5 − 0.5) = 1.4, itl_p99 1.48;
    tokens_per_s 4 / 4.25.
    """
    ### BEGIN SOLUTION
    if not token_times:
        raise ValueError("no token came, so there is no latency to sum up")
    gaps = sorted(after - before for before, after in zip(token_times, token_times[1:]))

    def percentile(p: float) -> float | None:
        if not gaps:
            return None
        place = (len(gaps) - 1) * p / 100
        below = int(place)
        above = min(below + 1, len(gaps) - 1)
        return gaps[below] + (place - below) * (gaps[above] - gaps[below])

    return {
        "ttft": token_times[0] - arrival,
        "itl_mean": sum(gaps) / len(gaps) if gaps else None,
        "itl_p50": percentile(50),
        "itl_p95": percentile(95),
        "itl_p99": percentile(99),
        "tokens_per_s": len(token_times) / (token_times[-1] - arrival),
    }
    ### END SOLUTION

# %% check="latency_summary"
check("06.latency_summary", latency_summary=latency_summary)

# %% [markdown]
# ## Your formulas and the real engine
# Nothing here goes into the engine. Instead, the engine comes to you: `record` runs one prompt and writes down every
# step, with the tokens that it computed, the tokens that were in the cache, and the seconds that it took. First the
# machine's two ceilings, then four recordings with longer and longer prompts.

# %%
roof = ceilings(engine.model.device, engine.model.dtype, anew=True)
ids = engine.tokenizer.encode(speeches()["2026-Trump-1"])
record(engine, ids[:64], 4)                      # warm up
traces = {n: record(engine, ids[:n], 12) for n in (16, 64, 256, 768)}
print(f"{roof.bytes_per_s / 1e9:.1f} GB/s, {roof.flops_per_s / 1e9:.0f} GFLOP/s")
for step in traces[256].steps[:3]:
    print(step)

# %% [markdown]
# Your latency figures for each recording. Read the first column downwards, and then the third.

# %%
with your_code():
    print("prompt    TTFT   ITL mean    p50    p95  tokens/s")
    for n, trace in traces.items():
        one = latency_summary(trace.arrival, trace.token_times)
        ms = [1000 * one[key] for key in ("ttft", "itl_mean", "itl_p50", "itl_p95")]
        print(f"{n:6} {ms[0]:7.0f} {ms[1]:10.1f} {ms[2]:6.1f} {ms[3]:6.1f} {one['tokens_per_s']:9.1f}")

# %% [markdown]
# And now count every one of these steps, before you look at its clock: your operations and your bytes, this machine's
# ceilings, and the least time that they give.

# %%
counted, bits = [], 8 * engine.model.dtype.itemsize
with your_code():
    for trace in traces.values():
        for step in trace.steps:
            flops = forward_flops(config, step.n_tokens, step.n_past)
            moved = forward_bytes(config, step.n_tokens, step.n_past, bits, bits)
            least = roofline_seconds(flops, moved, roof.flops_per_s, roof.bytes_per_s)
            counted.append((least, step.seconds, "prefill" if step.n_past == 0 else "decode"))

# %% [markdown]
# A point on the diagonal would be a step that loses nothing. How far above it a point lies is what the engine, or
# whoever shares this machine with it, still loses. (Points below it say that the ceilings were measured while something
# else was running: run that cell again.)

# %%
if counted:
    for kind in ("prefill", "decode"):
        factor = median(seconds / least for least, seconds, one in counted if one == kind)
        print(f"{kind:8} took {factor:.1f} times the least, in the middle")
    display(plots.counted_against_measured(counted))

# %% [markdown]
# You can now say what a step will take before it runs, and tell a slow engine from a slow machine. Of the two terms in
# your bytes, the second one grows with every token. Why it is there at all, and what it saves, is next. **Lesson 07.**

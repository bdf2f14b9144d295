# %% [markdown]
# # 06 · Two jobs, two bottlenecks: prefill and decode
# *2 hours with the lab. You need: lesson 00 (TTFT and ITL) and lesson 04 (the matrices of a layer).*
#
# **The idea.** Reading a prompt multiplies matrices by matrices, and the machine is busy computing. Writing a token
# multiplies the same matrices by a single vector, and the machine is busy fetching them. Same model, same code, two
# different things to wait for. (And a third that nobody means to wait for: the program itself.)
#
# | letter or word | meaning |
# |---|---|
# | n | tokens that go through the model in one step |
# | T | tokens so far, this step included |
# | R | requests in one step |
# | prefill | the work on the prompt, all its tokens at once |
# | decode | the work on one new token for each request |
# | FLOP | one floating point operation; a multiply-add is two |
# | bandwidth | bytes that the machine can read from memory in a second |
# | arithmetic intensity | FLOPs for each byte that is moved |
# | ridge point | the intensity at which computing and moving take equally long |
# | TTFT, ITL | time to first token; time from one token to the next |
# | overhead | time that is neither computing nor moving: starting operations, and the program between them |
# | MFU, MBU | share of the machine's FLOPs, and of its bandwidth, that a step really uses |

# %%
from statistics import median

from llmcourse import Engine
from llmcourse.claims import prefill_and_decode as article
from llmcourse.measure.cards import CARDS
from llmcourse.measure.ceilings import ceilings
from llmcourse.measure.clock import Latency, Percentiles
from llmcourse.measure.known_models import MODELS
from llmcourse.measure.roofline import Placed, kv_bytes, step_work, weight_bytes_read
from llmcourse.measure.thin import thin
from llmcourse.measure.trace import record, watched
from llmcourse.text.corpus import speeches
from llmcourse.workbook import explore, measured, plots, predict

import torch              # after llmcourse, which says how torch's threads wait for each other

engine = Engine()
model, config = engine.model, engine.model.config
bits = 8 * model.dtype.itemsize                # of a weight, and of a number in the cache
ids = engine.tokenizer.encode(speeches()["2026-Trump-1"])

# %% [markdown]
# ## A weight is fetched once
# A small matrix of weights, 3 rows of 4. Multiply it by one vector: 12 multiplications and 12 additions (the first of
# each row adds to zero), so 24 FLOPs. Multiply it by two vectors, and it is 48. But the weights are the same twelve.

# %%
# NBVAL_CHECK_OUTPUT
W = torch.arange(12.0).reshape(3, 4)
print(f"the weights: {W.numel()} numbers of 4 bytes, {W.nbytes} bytes")
for n in (1, 2, 8):
    flops = 2 * W.numel() * n
    print(f"n = {n}: {flops:3} FLOP, {flops / W.nbytes:.1f} for each byte of weights")

# %% [markdown]
# That quotient is the **arithmetic intensity**. One vector uses every weight once and throws it away; eight vectors use
# it eight times. In a language model the vectors are the tokens of the step. A prompt brings hundreds. A new token comes
# alone, since the one after it is not known yet.
#
# So what does it cost to send more tokens through the real model at once? The bars of lesson 00 said: less than one
# would think. Let us look closely. (A prompt of n tokens and its first new token are one step, and its time is the TTFT.)

# %%
def ttft(n, runs=3):
    """Seconds from the arrival of a prompt of n tokens to its first token: the median."""
    waits = [engine.generate(ids[:n], temperature=0, max_tokens=1).ttft_s for _ in range(runs)]
    return median(waits)


ttft(64)                                       # warm up
step_s = {n: ttft(n) for n in (1, 4, 16, 64, 256, 512)}
for n, seconds in step_s.items():
    print(f"n = {n:3}: {1000 * seconds:7.1f} ms, {1000 * seconds / n:6.2f} ms for each token")

# %% [markdown]
# Go down the milliseconds of the step: the tokens grow fourfold from line to line (twofold at the end). At first the step
# hardly notices; in the end it takes its time in proportion. Somewhere between, the machine began to wait for something
# else. To see what, we ask the machine itself.

# %% [markdown]
# ## Two ceilings
# How fast can this machine read from memory? Let it sum up a buffer that is far too large for its caches. How fast can
# it compute? Let it multiply large square matrices. These are the best it can do; a model can only come near.

# %%
roof = ceilings(model.device, model.dtype, anew=True)
print(f"reads    {roof.bytes_per_s / 1e9:7.1f} GB/s")
print(f"computes {roof.flops_per_s / 1e9:7.1f} GFLOP/s")
print(f"in the time of one byte: {roof.ridge:.1f} FLOP")

# %% [markdown]
# The last line is the **ridge point**. A step that has fewer operations for each byte leaves the arithmetic idle, waiting
# for memory: it is *memory-bound*. A step that has more is *compute-bound*, and memory waits. (Both numbers were
# measured a moment ago. If something else was running meanwhile, they are too low; the cell can be run again.)
#
# ## Count a step
# Now the model's side: how many operations, how many bytes? Both can be counted on paper, and the lab has you do it.
#
# $$\text{FLOPs} \approx 2 \cdot \text{weights} \cdot n + \text{attention} \qquad
#   \text{bytes} = \text{weights once} + \text{keys and values of } T \text{ tokens}$$

# %%
def lines_about(name, n, past):
    """What one step has to do, and the least time for each half of it on this machine."""
    work = step_work(config, [(n, past)], bits, bits)
    computing, moving = work.flops / roof.flops_per_s, work.bytes / roof.bytes_per_s
    print(f"{name:22} {work.flops / 1e9:7.2f} GFLOP in {1000 * computing:7.1f} ms"
          f" {work.bytes / 1e6:5.0f} MB in {1000 * moving:5.1f} ms"
          f"  {work.intensity:6.1f} FLOP/B: {roof.bound(work)}-bound")


lines_about("prefill, 512 tokens", 512, 0)
lines_about("decode after 64", 1, 64)
lines_about("decode after 4,000", 1, 4000)

# %% [markdown]
# Computing and moving go on side by side, so the *longer* of the two times is the least that a step can take. For the
# prompt it is the arithmetic, for the new token the memory, and it is not close.
#
# The curve from above again, now with that least time beside it:

# %%
placed = {n: Placed(step_work(config, [(n, 0)], bits, bits), seconds, roof)
          for n, seconds in step_s.items()}
least_s = [roof.seconds(one.work) for one in placed.values()]
plots.step_times(list(step_s), list(step_s.values()), least_s)

# %% [markdown]
# The dashed line is flat while the weights are being fetched, and rises once the arithmetic takes longer than that. It
# was computed from two measured numbers and a formula, without running the model. The real engine stays above it, and
# bends as it does.

# %% [markdown]
# ## The roofline
# One picture for all of it. To the right: more operations for each byte. Up: more operations per second. The roof is
# what the machine allows. Decode can move to the right too, when several requests share a step, each with one token: the
# weights are fetched once for all of them.

# %%
def itl(n_requests, n_output=7):
    """Seconds of a decode step over so many requests of about 20 tokens: the median."""
    prompts = [ids[16 * i : 16 * (i + 1)] for i in range(n_requests)]
    runs = engine.generate(prompts, temperature=0, max_tokens=n_output, ignore_eos=True)
    return median(gap for run in runs for gap in run.itl_s)


itl_s = {n_requests: itl(n_requests) for n_requests in (1, 4, 16, 32)}
batches = {R: Placed(step_work(config, [(1, 19)] * R, bits, bits), seconds, roof)
           for R, seconds in itl_s.items()}
points = [(f"n = {n}", "prefill", placed[n].work.intensity, placed[n].flops_per_s)
          for n in (16, 64, 512)]
points += [(f"R = {R}", "decode", one.work.intensity, one.flops_per_s)
           for R, one in batches.items() if R != 32]
plots.roofline(roof, points)

# %% [markdown]
# **This is the picture to keep.** One token of one request stands far down on the left, under the slope: it waits for
# memory. A long prompt stands on the right, under the flat roof: it waits for arithmetic. And a batch of many requests
# climbs along the slope, since one reading of the weights serves them all. That climb is why a service can be cheap;
# lesson 12 builds it.
#
# How far below the roof is each? For prefill the honest figure is the **MFU**, the share of the machine's FLOPs that it
# used; for decode it is the **MBU**, the same for bandwidth.

# %%
steps = {"prefill of 512": placed[512], "decode, R = 1": batches[1],
         "decode, R = 16": batches[16]}
for name, one in steps.items():
    print(f"{name:15} MFU {one.mfu:5.0%}   MBU {one.mbu:5.0%}   {one.bound}-bound")

# %% [markdown]
# ## The third regime: overhead
# Neither figure reaches 100 %. Is the rest lost in the arithmetic, in memory, or between the two? The roofline has no
# word for the third: a step of one token is hundreds of operator calls, each of which must be started, however little it
# has to do. That can be measured: take the weights away and keep the calls. A *thin* model has as many layers, heads and
# operations as ours, and matrices 64 wide.

# %%
small = Engine(thin(model))
both = {"our model": engine, "the thin one": small}
one_s = {name: [] for name in both}
for _ in range(6):                             # taking turns, so that both see the same minute
    for name, each in both.items():
        run = each.generate([1], temperature=0, max_tokens=1, ignore_eos=True)
        one_s[name].append(run.ttft_s)
one_s = {name: median(seconds[1:]) for name, seconds in one_s.items()}
overhead = one_s["the thin one"]
for name, each in both.items():
    megabytes = each.model.config.n_params * model.dtype.itemsize / 1e6
    print(f"{name:13} {megabytes:6.1f} MB of weights,"
          f" a step of one token takes {1000 * one_s[name]:6.2f} ms")
print(f"without the weights {overhead / one_s['our model']:.0%} of the time is left")

# %% [markdown]
# What is left is **overhead**. It is the same for a step of one token and for one of 512, so it vanishes in prefill and
# shows in decode; and faster memory or arithmetic does not touch it. A graphics card makes it *worse*, as a share: its
# memory is a hundred times faster, and starting an operation is not. Three remedies, all of them in later lessons:
# *fusing* several operations into one (what lies between them then never leaves the registers), *compiling* the whole step
# into one call, and on a GPU *recording* all of its starts once and replaying them (CUDA graphs). Lesson 14 does it.

# %% [markdown]
# ## Does a batch ever leave the slope?
# More requests share the weights, so their step has more operations for each byte. But each request brings keys and
# values that it shares with *nobody*. Count both, for decode of Llama-3-8B with 16 bits, 4,000 tokens behind each request:

# %%
# NBVAL_CHECK_OUTPUT
llama = MODELS["Llama-3-8B"].config
for R in (1, 16, 256, 4096):
    work = step_work(llama, [(1, 4000)] * R, 16, 16)
    shared = weight_bytes_read(llama, R, 16) / work.bytes
    print(f"R = {R:5,}: {shared:4.0%} of the bytes are weights,"
          f" {work.intensity:6.1f} FLOP per byte")
alone = 2 * 2 * llama.n_heads * llama.head_dim / (2 * llama.n_kv_heads * llama.head_dim * 2)
print(f"attention alone: {alone:.0f} FLOP per byte of keys and values, Hq / Hkv at 16 bits")

# %% [markdown]
# The intensity stops growing. **A batch shares the weights and not the KV cache**: in attention each key and value is used
# once by each of the query heads that share it, and then it has to make room. Its intensity stays at Hq / Hkv, whatever R
# is, far under any ridge point. So with long contexts decode does not leave the slope with any number of requests.
#
# Play: a map of requests × context for each machine, coloured by what a decode step waits for there. Which model gets
# into the dark blue at all? Then give the weights 4 bits. (Cards: the makers' own numbers for dense 16-bit products, counted
# with 16-bit keys and values. Overhead is left out: on a small model it would fill the lower left corner.)

# %%
FIRST = "NVIDIA H100 SXM"
MACHINES = {FIRST: CARDS[FIRST], "this machine": roof, **CARDS}


def what_bounds(machine, model, weight_bits):
    """Decode over R requests of T tokens each: which of the three needs most of the time."""
    return plots.bound_map(MACHINES[machine], MODELS[model], weight_bits, machine)


explore(what_bounds, machine=list(MACHINES), weight_bits=[16, 8, 4],
        model=["Llama-3-8B", "SmolLM2-135M", "Llama-2-7B", "Llama-3-70B"])

# %% [markdown]
# ## Tokens per second
# The same measurements, as people quote them: tokens per second, against the length of the prompt and against the number
# of requests that decode together.

# %%
plots.throughput({n: n / seconds for n, seconds in step_s.items()},
                 {n: (n / seconds, seconds) for n, seconds in itl_s.items()})

# %% [markdown]
# On the left, longer prompts get *more* tokens through in a second, until the arithmetic is the limit. On the right, each
# request waits longer for its next token (the numbers stand at the points), while all together get more of them. Throughput and latency are two
# questions: the first one is the owner's, the second one the user's.

# %% [markdown]
# ## Predict
# Decode one token after a prompt of 64. It must read all weights once, and the keys and values of the tokens so far. How
# long will that take **on this machine**? You have the bytes and the bandwidth; divide, and write down a number. Then
# decide: will the real engine be at that number, or by what factor above it?

# %%
decode_bytes = weight_bytes_read(config, 1, bits) + kv_bytes(config, 64, bits)
print(f"{decode_bytes / 1e6:,.0f} MB to read, at {roof.bytes_per_s / 1e9:.1f} GB/s")

# %%
predict("ITL after 64 tokens", ..., "ms")

# %%
LENGTH = article.WRITTEN + 1
result = engine.generate(ids[:64], temperature=0, max_tokens=LENGTH, ignore_eos=True)
latency = Latency.of(result)
print(f"bytes ÷ bandwidth: {1000 * decode_bytes / roof.bytes_per_s:.1f} ms")
measured("ITL after 64 tokens", 1000 * latency.itl.p50)

# %% [markdown]
# One number hides something: not every token takes the same time. Whoever watches a stream notices the slow ones. So
# latencies are given as **percentiles**: p50 is the middle, and 5 % of the gaps were longer than p95.

# %%
named = {"mean": latency.itl_mean_s, **latency.itl._asdict(), "longest": max(latency.itl_s)}
print(f"{len(latency.itl_s)} gaps:",
      ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in named.items()))

# %% [markdown]
# ## A long context
# The keys and values of all tokens so far are read at every step. After 64 tokens that is nothing. After 4,000?
# (This takes one long prefill, half of this lesson's patience; its time is the TTFT of a prompt of 4,000 tokens.)

# %%
long = Latency.of(engine.generate(ids[:4000], temperature=0, max_tokens=17, ignore_eos=True))
ttfts = {64: latency.ttft_s, 4000: long.ttft_s}
itls = {64: latency.itl.p50, 4000: long.itl.p50}
rows = []
for T, seconds in itls.items():
    weights, kv = weight_bytes_read(config, 1, bits), kv_bytes(config, T, bits)
    rows.append((T, weights, kv, (weights + kv) / roof.bytes_per_s, seconds))
plots.step_bytes(rows)

# %%
(_, _, _, counted, short), (_, _, _, more, longer) = rows
print(f"counted:  {more / counted:.2f} times as long after 4,000 tokens as after 64")
print(f"measured: {longer / short:.2f} times")
print(f"TTFT:     {1000 * ttfts[64]:,.0f} ms for a prompt of 64 tokens,"
      f" {1000 * ttfts[4000]:,.0f} ms for one of 4,000")
early, late = article.edges(latency.itl_s)
print(f"over an output of {article.WRITTEN} tokens the gaps grew {late / early:.2f} times")

# %% [markdown]
# Counting gives the least that a long context must cost. The two factors differ in both directions: overhead, which is the
# same at any length, makes the measured one smaller, and attention over a long past, far from the memory's best speed,
# makes it larger. So there are two ways to be slow, with two causes. TTFT grows with
# the *prompt*: more arithmetic before the first token. ITL grows with the *context*: more bytes for every token, no
# matter who wrote them. In this small model with its few key/value heads the weights dominate for long; lesson 07 shows
# models whose cache outgrows them.

# %% [markdown]
# ## “GPU utilization” misleads
# The tool that watches the machine says 100 %. Good? It counts the time in which *something* was running, however slowly.
# Our engine can be watched in the same way: every stage is a function, so we note the time while any of them is at work.
# Compare that share with the share of the arithmetic, and of the bandwidth, that was used.

# %%
parts, busy = watched(engine.parts, model.device)
seen = Engine(model, parts)
record(seen, ids[:64], 2)                      # warm up
trace = record(seen, ids[:512], 17, busy)
shares = {"something is running": {}, "MFU": {}, "MBU": {}}
for name, steps in [("prefill", trace.prefill), ("decode", trace.decode)]:
    step = sorted(steps, key=lambda one: one.seconds)[len(steps) // 2]
    work = step_work(config, [(step.n_tokens, step.n_past)], bits, bits)
    one = Placed(work, step.seconds, roof)
    busy_s, all_s = sum(s.busy_s for s in steps), sum(s.seconds for s in steps)
    shares["something is running"][name] = busy_s / all_s
    shares["MFU"][name], shares["MBU"][name] = one.mfu, one.mbu
plots.utilization(shares)

# %% [markdown]
# Two machines that are “fully utilized”, and they could not differ more: one computes, the other one fetches. If decode is
# slow, faster arithmetic would not help at all. Fewer bytes would: fewer bits for each weight (lesson 09), a smaller
# cache (lesson 08), or more requests for the same bytes (lesson 12).
#
# ### Is it true?
# What the [article that this course tests](../docs/claims.md) says about this lesson's subject, its statements
# [C11](../docs/claims.md#c11), [C12](../docs/claims.md#c12) and [C26](../docs/claims.md#c26), judged by the numbers of this
# page. What had to come out was written down before; the links say what, and why.

# %%
verdicts = {
    "C11, prefill is compute-bound, decode memory-bound":
        article.bound(step_s | {1: one_s["our model"]}, overhead, roof, model),
    "C12, long prompts hurt TTFT, long outputs and contexts ITL":
        article.waits(ttfts, {64: early, 4000: itls[4000]}, late / early),
    "C26, utilization is high in prefill and low in decode": article.misleading(
        shares["something is running"], shares["MFU"]),
}
for statement, found in verdicts.items():
    print(f"{statement}: {found.verdict}")
    print(f"    {found.measured}{'; ' + found.why if found.why else ''}")

# %% [markdown]
# ## What you can now do
# - Count the FLOPs and bytes of a step, and say what it waits for on a machine whose two ceilings you know.
# - Predict an ITL from bytes ÷ bandwidth, and name what is lost when the real one is longer.
# - Say why a batch is cheap for decode, why it is not for prefill, and why a long context takes the gain away.
# - Tell the third regime, overhead, from the other two by taking the weights away.
# - Not be fooled by “100 % utilization”.
#
# In the lab you write the counting and the clock yourself, and put both beside a recording of the engine.
#
# **Out loud**
# 1. A colleague buys a card with twice the FLOPs and the same bandwidth. What gets faster, and for whom?
# 2. Weights of 4 bits instead of 16: what happens to the ITL of one user, at best? And to the TTFT of a long prompt?
# 3. The dashboard shows 98 % utilization, and the ITL is bad. Which two numbers do you ask for next?
#
# <details><summary>Answers</summary>
#
# 1. Prefill, so the TTFT of long prompts; and decode only where its batch is large and its contexts short enough to stand
#    right of the ridge point. A single user's ITL stays, because it waits for memory.
# 2. A quarter of the bytes of the weights, so at best nearly a quarter of the ITL, if the kernel really reads the packed
#    bytes (the cache is still there). The TTFT hardly changes: it waits for arithmetic, and the FLOPs are the same.
# 3. The MBU and the MFU of a step. A high MBU says that the step is at the memory's limit, and only fewer bytes or more
#    requests help. When both are low, time is lost between the operations.
#
# </details>

# %% [markdown]
# ## Further reading
# - Williams, Waterman and Patterson 2009, "Roofline: An Insightful Visual Performance Model for Multicore Architectures":
#   the picture's first appearance, ten readable pages.
# - Pope et al. 2022, "Efficiently Scaling Transformer Inference" (arXiv 2211.05102): the same counting for 540 billion
#   parameters, and where MFU comes to decode.
# - He 2022, "Making Deep Learning Go Brrrr From First Principles": compute, memory and overhead, told for programmers.

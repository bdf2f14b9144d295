"""Figures of lesson 07: what is computed again, what a token costs at each length, and the memory that pays for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmcourse.measure.known_models import MODELS
from llmcourse.measure.memory import context_that_outgrows, kv_bytes, requests_that_fit, weight_bytes
from llmcourse.measure.steps import first_length

from .style import COLOURS, HATCHES, Picture, finish, panel, styled

GB = 1e9
MEMORIES = {"a laptop's 8 GB": 8, "a card's 24 GB": 24, "a large card's 80 GB": 80}
SHORTEST = 128  # tokens, where the axis of contexts begins


@styled
def computed_and_kept(n: int) -> Picture:
    """Keys step by step: which are computed, without a cache and with one. n: steps, one token each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 0.26 * n + 1.3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, cached in ((left, False), (right, True)):
        for step in range(n):
            for token in range(step + 1):
                _box(axes, token, step, "decode" if cached and token < step else "prefill")
        computed = n if cached else n * (n + 1) // 2
        axes.set(title=f"{'With' if cached else 'Without'} a cache: {computed} computed", xlabel="token",
                 xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6))
        axes.set_xticks(range(n), range(1, n + 1))
        axes.set_yticks(range(n), range(1, n + 1))
        axes.grid(False)
    left.set_ylabel("step")
    _legend(figure)
    words = (f"Two triangles of boxes, one row for each of {n} steps. Without a cache every box of the triangle is "
             f"computed, {n * (n + 1) // 2} in all; with one only the last box of each row is, {n} in all, and the "
             "others are read.")
    return finish(left, words)


def _box(axes, token: int, step: int, role: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((token - 0.42, step - 0.42), 0.84, 0.84, facecolor=COLOURS[role], edgecolor="white",
                             hatch=HATCHES.get(role, ""), linewidth=0))


def _legend(figure) -> None:
    from matplotlib.patches import Patch

    roles = {"prefill": "key and value computed", "decode": "read from the cache"}
    figure.legend(handles=[Patch(facecolor=COLOURS[role], hatch=HATCHES.get(role, ""), edgecolor="white", label=label)
                           for role, label in roles.items()], loc="outside lower center", ncols=2)


@styled
def time_per_token(without: Mapping[int, float], cached: Mapping[int, float], factor: float = 5) -> Picture:
    """Seconds of one step against the length of the text, and where the cache is `factor` times faster.

    without, cached: length → seconds, at the same lengths.
    """
    axes = panel(6.4, 3.6, "What the next token costs", x="tokens so far", y="time for one token (ms)")
    lengths = sorted(without)
    lines = (without, "prefill", "s", "without a cache"), (cached, "decode", "o", "with a cache")
    for seconds, role, marker, label in lines:
        axes.loglog(lengths, [1000 * seconds[n] for n in lengths], color=COLOURS[role], marker=marker, label=label)
    crossing = first_length(without, cached, factor)
    if crossing is not None:
        axes.axvline(crossing, color=COLOURS["reference"], linestyle=":", linewidth=1.2)
        axes.annotate(f" {factor:g}× at {crossing:,} tokens", (crossing, 1000 * min(cached.values())), size=9, va="top",
                      xytext=(2, -8), textcoords="offset points")
    axes.set_ylim(1000 * min(cached.values()) / 2.2, None)
    axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
    _plain(axes)
    axes.legend(loc="upper left")
    last = lengths[-1]
    where = f"at {crossing:,} tokens it is {factor:g} times above" if crossing else f"it is never {factor:g} times above"
    slow, fast = ([f"{1000 * seconds[n]:,.0f} ms" for n in (lengths[0], last)] for seconds in (without, cached))
    return finish(axes, f"Two lines. Without a cache the time climbs from {slow[0]} at {lengths[0]} tokens to {slow[1]} at "
                        f"{last:,}; with one it goes from {fast[0]} to {fast[1]}; {where}.")


@styled
def kv_memory(model: str, context: int, batch: int, kv_bits: float = 16, weight_bits: float = 16) -> Picture:
    """The cache of a known model against the context, beside its weights. context: tokens of each of `batch` requests."""
    known = MODELS[model]
    lengths = [SHORTEST * 2**i for i in range(14)]
    cache = [kv_bytes(known, n, batch, kv_bits) / GB for n in lengths]
    here, weights = kv_bytes(known, context, batch, kv_bits) / GB, weight_bytes(known, weight_bits) / GB
    title = f"{model}: cache {_gb(here)}, weights {_gb(weights)}"
    axes = panel(6.8, 4.0, title, x="tokens of each request", y="memory (GB)")
    for name, size in MEMORIES.items():
        axes.axhline(size, color="#999999", linewidth=0.8)
        axes.text(lengths[0], size, name, size=8, color="#555555", va="center", zorder=3,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
    axes.axhline(weights, color=COLOURS["reference"], linestyle="--", label="weights")
    requests = f"{batch:,} request{'s' * (batch > 1)}"
    axes.loglog(lengths, cache, color=COLOURS["decode"], linewidth=2.2, label=f"cache of {requests}")
    axes.plot(context, here, "o", color=COLOURS["chosen"], markersize=9, zorder=4, label=f"at {context:,} tokens")
    axes.set_xticks(lengths[::3], [_tokens(n) for n in lengths[::3]])
    axes.set(ylim=(min(0.05, cache[0], here), max(200, 1.3 * cache[-1], 1.3 * weights)))
    _plain(axes)
    axes.legend(loc="lower right")
    meet = context_that_outgrows(known, batch, kv_bits, weight_bits)
    larger = "larger than" if here > weights else "smaller than"
    where = f"They are equal at {meet:,.0f} tokens." if meet else "They never meet: a window stops the cache before."
    return finish(axes, f"A rising line, the cache, and a level one, the weights. With {requests} of {context:,} tokens "
                        f"the cache takes {_gb(here)}, {larger} the weights' {_gb(weights)}. {where}")


@styled
def batch_that_fits(models: Sequence[str], contexts: Sequence[int], memory_gb: float) -> Picture:
    """How many requests fit beside the weights, 16 bits each, against their context."""
    axes = panel(6.2, 3.4, f"Requests that fit into {memory_gb:g} GB", x="tokens of each request", y="requests at once")
    roles = ["reference", "chosen", "prefill", "decode"]
    words = []
    for model, role, marker in zip(models, roles, "so^D"):
        fit = [requests_that_fit(MODELS[model], memory_gb * GB, n) for n in contexts]
        axes.loglog(contexts, fit, color=COLOURS[role], marker=marker, label=model)
        for n, number in zip(contexts, fit):
            axes.annotate(f"{number:,}", (n, number), xytext=(4, 5), textcoords="offset points", size=8)
        words.append(f"{model} {', '.join(f'{n:,}' for n in fit)}")
    axes.set_xticks(contexts, [_tokens(n) for n in contexts])
    _plain(axes)
    axes.legend(loc="upper right")
    at = ", ".join(map(_tokens, contexts))
    return finish(axes, f"Falling lines: each doubling of the context halves the requests. At {at} tokens: "
                        f"{'; '.join(words)}.")


def _plain(axes) -> None:
    """Ordinary numbers on a logarithmic axis of heights, three to each factor of ten where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1000 else (1,), numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def _gb(value: float) -> str:
    return f"{value:,.0f} GB" if value >= 100 else f"{value:.1f} GB" if value >= 10 else f"{value:.2f} GB"


def _tokens(n: int) -> str:
    """4,096 as 4K: thousands of 1,024, as contexts are named."""
    return f"{n // 1024**2}M" if n >= 1024**2 else f"{n // 1024}K" if n >= 1024 else str(n)

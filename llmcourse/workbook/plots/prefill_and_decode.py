"""Figures of lesson 06: one step's time, the roofline, throughput, bytes of a step, utilization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from llmcourse.measure.roofline import Ceilings

from .style import COLOURS, Picture, fill, finish, panel, styled

FEW_DECADES = 300  # an axis that spans less gets ticks at 2 and 5 as well
MARKERS = {"prefill": "^", "decode": "o", "chosen": "D"}


class Point(NamedTuple):
    """A step on the roofline. role: "prefill", "decode" or "chosen"; flops_per_s: what it reaches."""

    label: str
    role: str
    intensity: float
    flops_per_s: float


@styled
def step_times(n_tokens: Sequence[int], seconds: Sequence[float], least: Sequence[float]) -> Picture:
    """The time of one step against the tokens in it, and the least that the machine's ceilings allow."""
    axes = panel(6.2, 3.4, "One step, more and more tokens", x="n, tokens in the step (logarithmic)",
                 y="time of the step (ms)")
    axes.loglog(n_tokens, [1000 * s for s in least], "--", color=COLOURS["reference"], label="the least possible")
    axes.loglog(n_tokens, [1000 * s for s in seconds], color=COLOURS["prefill"], marker="^", label="measured")
    _plain_ticks(axes, n_tokens)
    _written_out(axes.yaxis)
    axes.legend(loc="upper left")
    words = "; ".join(f"n = {n}: {1000 * s:,.0f} ms" for n, s in zip(n_tokens, seconds))
    return finish(axes, f"Two rising curves, flat at first. Measured: {words}. The least possible: "
                        f"{1000 * least[0]:,.0f} ms at n = {n_tokens[0]}, {1000 * least[-1]:,.0f} ms at n = {n_tokens[-1]}.")


@styled
def roofline(
    ceilings: Ceilings, points: Sequence[tuple[str, str, float, float]], title: str = "The roofline of this machine"
) -> Picture:
    """The roof, log-log: a slope where bytes are waited for, a flat top where operations are; and steps below it.

    points: fields of `Point`.
    """
    points = [Point(*point) for point in points]
    axes = panel(6.8, 4.2, title, x="arithmetic intensity (FLOP per byte, logarithmic)", y="GFLOP/s (logarithmic)")
    ridge, peak = ceilings.ridge, ceilings.flops_per_s / 1e9
    intensities = [ridge, *(point.intensity for point in points)]
    low, high = min(*intensities, ridge / 8) / 2.5, max(*intensities, ridge * 4) * 3.5
    xs = [low, ridge, high]
    axes.loglog(xs, [ceilings.reachable(x) / 1e9 for x in xs], color=COLOURS["reference"], linewidth=1.8)
    axes.axvline(ridge, color=COLOURS["reference"], linewidth=0.8, linestyle=":")
    axes.text(ridge, peak * 1.35, f"ridge point {_short(ridge)}", ha="center", size=9)
    lowest = min([ceilings.reachable(low) / 1e9, *(point.flops_per_s / 1e9 for point in points)])
    axes.set(xlim=(low, high), ylim=(lowest / 2, peak * 2.6))
    _written_out(axes.xaxis, axes.yaxis)
    axes.text(low * 1.15, lowest / 1.8, "◂ memory-bound", size=9)
    axes.text(high / 1.15, lowest / 1.8, "compute-bound ▸", size=9, ha="right")
    for role in dict.fromkeys(point.role for point in points):
        mine = [point for point in points if point.role == role]
        axes.plot([p.intensity for p in mine], [p.flops_per_s / 1e9 for p in mine], MARKERS[role], color=COLOURS[role],
                  markersize=8, markeredgecolor=COLOURS["reference"], markeredgewidth=0.6, label=role, linestyle="none")
    for point in points:
        beside = {"xytext": (-7, -11), "ha": "right"} if point.role == "prefill" else {"xytext": (7, -10)}
        axes.annotate(point.label, (point.intensity, point.flops_per_s / 1e9), size=8, textcoords="offset points", **beside)
    if len({point.role for point in points}) > 1:
        axes.legend(loc="center right")
    words = "; ".join(
        f"{p.label} ({p.role}) at {_short(p.intensity)} FLOP per byte reaches {_short(p.flops_per_s / 1e9)} GFLOP/s, "
        f"{p.flops_per_s / ceilings.reachable(p.intensity):.0%} of the roof there" for p in points)
    return finish(axes, f"{title}: a roof that rises with {_short(ceilings.bytes_per_s / 1e9)} GB/s up to the ridge "
                        f"point at {_short(ridge)} FLOP per byte, and is flat at {peak:,.0f} GFLOP/s from there. "
                        f"Below it: {words}.")


@styled
def throughput(prefill: Mapping[int, float], decode: Mapping[int, tuple[float, float]]) -> Picture:
    """Tokens per second, of prefill against the prompt's length and of decode against the requests in a step.

    prefill: n → tokens per second. decode: R → (tokens per second of all requests, ITL in seconds).
    """
    axes = panel(8.6, 3.3)
    figure = axes.figure
    axes.remove()
    left, right = figure.subplots(1, 2)
    left.set(title="Prefill: longer prompts", xlabel="n, tokens of the prompt (logarithmic)", ylabel="tokens per second")
    left.semilogx(list(prefill), list(prefill.values()), color=COLOURS["prefill"], marker="^")
    right.set(title="Decode: more requests at once", xlabel="R, requests in the step (logarithmic)",
              ylabel="tokens per second")
    right.semilogx(list(decode), [rate for rate, _ in decode.values()], color=COLOURS["decode"], marker="o")
    for n_requests, (rate, itl) in decode.items():
        right.annotate(f"ITL {1000 * itl:,.0f} ms", (n_requests, rate), xytext=(0, 8), size=8, ha="center",
                       textcoords="offset points")
    for one, ticks in ((left, prefill), (right, decode)):
        _plain_ticks(one, list(ticks))
        one.set_ylim(0, one.get_ylim()[1] * 1.12)
    right.margins(x=0.14)
    longer = "; ".join(f"{n} tokens: {rate:,.0f}" for n, rate in prefill.items())
    more = "; ".join(f"{n} at once: {rate:,.0f}, each with an ITL of {1000 * itl:,.0f} ms"
                     for n, (rate, itl) in decode.items())
    return Picture(figure, f"Two curves of tokens per second. Prefill by prompt length: {longer}. "
                           f"Decode by requests: {more}.")


class BytesRead(NamedTuple):
    """What one decode step reads, in bytes, and its time: counted (bytes over bandwidth) and measured, in seconds."""

    context: int
    weights: float
    kv: float
    counted: float
    measured: float


@styled
def step_bytes(rows: Sequence[tuple[int, float, float, float, float]]) -> Picture:
    """Bytes of a decode step at several contexts, weights and keys and values apart, with the times beside them.

    rows: fields of `BytesRead`.
    """
    rows = [BytesRead(*row) for row in rows]
    axes = panel(7.6, 0.62 * len(rows) + 1.5, "What one decode step must read", x="bytes of the step (MB)",
                 y="tokens of context")
    places = range(len(rows))
    axes.barh(places, [row.weights / 1e6 for row in rows], label="weights", height=0.6, color=COLOURS["other"])
    axes.barh(places, [row.kv / 1e6 for row in rows], left=[row.weights / 1e6 for row in rows], height=0.6,
              label="keys and values", **fill("decode"))
    most = max(row.weights + row.kv for row in rows) / 1e6
    for place, row in zip(places, rows):
        said = f" counted {1000 * row.counted:,.1f} ms\n measured {1000 * row.measured:,.1f} ms"
        axes.text((row.weights + row.kv) / 1e6, place, said, va="center", size=8.5)
    axes.set_yticks(places, [f"{row.context:,}" for row in rows])
    axes.set_xlim(0, most * 1.32)
    axes.grid(axis="y", visible=False)
    axes.figure.legend(loc="outside lower center", ncols=2)
    words = "; ".join(
        f"{row.context:,} tokens: {row.weights / 1e6:,.0f} MB of weights and {row.kv / 1e6:,.0f} MB of keys and values, "
        f"counted {1000 * row.counted:,.1f} ms, measured {1000 * row.measured:,.1f} ms" for row in rows)
    return finish(axes, f"Stacked bars, one for each context. {words}.")


@styled
def utilization(shares: Mapping[str, Mapping[str, float]]) -> Picture:
    """Shares from 0 to 1 under several names, for prefill and for decode side by side: name → role → share."""
    axes = panel(6.6, 3.1, "Three answers to “how busy is the machine?”", y="share (%)")
    for shift, role in ((-0.19, "prefill"), (0.19, "decode")):
        heights = [100 * values[role] for values in shares.values()]
        bars = axes.bar([place + shift for place in range(len(shares))], heights, width=0.36, label=role, **fill(role))
        axes.bar_label(bars, [f"{height:.0f}" for height in heights], size=9)
    axes.set_xticks(range(len(shares)), list(shares))
    axes.set_ylim(0, max(115, *(115 * value for values in shares.values() for value in values.values())))
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", ncols=2)
    words = "; ".join(f"{name}: prefill {values['prefill']:.0%}, decode {values['decode']:.0%}"
                      for name, values in shares.items())
    return finish(axes, f"Pairs of bars. {words}.")


@styled
def counted_against_measured(points: Sequence[tuple[float, float, str]]) -> Picture:
    """Seconds of steps, counted and measured: (counted, measured, "prefill" or "decode"), log-log, with the diagonal."""
    axes = panel(5.6, 4.2, "Every step, counted and measured", x="counted, the least time (ms, logarithmic)",
                 y="measured (ms, logarithmic)")
    everything = [1000 * value for counted, measured, _ in points for value in (counted, measured)]
    ends = [min(everything) / 1.5, max(everything) * 1.5]
    axes.loglog(ends, ends, color=COLOURS["reference"], linestyle="--", label="nothing lost")
    words = []
    for role in dict.fromkeys(role for _, _, role in points):
        mine = [(1000 * counted, 1000 * measured) for counted, measured, kind in points if kind == role]
        axes.loglog(*zip(*mine), MARKERS[role], color=COLOURS[role], markeredgecolor=COLOURS["reference"],
                    markeredgewidth=0.5, markersize=7, label=role, linestyle="none")
        factors = sorted(measured / counted for counted, measured in mine)
        words.append(f"{role}, {len(mine)} steps, from {min(y for _, y in mine):,.0f} to {max(y for _, y in mine):,.0f} ms: "
                     f"{factors[len(factors) // 2]:.1f} times the least in the middle")
    axes.set(xlim=ends, ylim=ends)
    _written_out(axes.xaxis, axes.yaxis)
    axes.legend(loc="lower right")
    return finish(axes, f"Points against the diagonal where nothing is lost. {'; '.join(words)}.")


def _short(value: float) -> str:
    """Three digits that matter, thousands written out."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _plain_ticks(axes, values: Sequence[int]) -> None:
    """Ticks at some of the values, written out."""
    shown = [value for i, value in enumerate(values) if len(values) < 8 or i % 2 == 0 or i == len(values) - 1]
    axes.set_xticks(shown, [f"{value:,}" for value in shown])
    axes.minorticks_off()


def _written_out(*logarithmic) -> None:
    """Numbers such as 100 or 0.1 along these axes in place of powers of ten, and 2 and 5 where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in logarithmic:
        low, high = axis.get_view_interval()
        few = high / low < FEW_DECADES
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())

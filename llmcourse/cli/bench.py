"""`llmcourse bench`: tokens per second, and how near they come to what the machine can do."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from llmcourse.cli import show
from llmcourse.cli.options import AsJson, CacheName, Device, Dtype, Model, PartsName, Quant

if TYPE_CHECKING:
    from llmcourse.engine.engine import Engine
    from llmcourse.measure.bench import Bench


class Kind(str, Enum):
    """What there is to measure."""

    DECODE = "decode"
    PREFILL = "prefill"


What = Annotated[Kind, typer.Argument(metavar="decode|prefill", help="One token after the other, or a whole prompt.")]
Runs = Annotated[int, typer.Option(help="How many runs; the median counts.", min=1)]
PromptTokens = Annotated[
    Optional[int],
    typer.Option(help="Tokens of the prompt. Without it: 16 for decode, 512 for prefill.", min=1, show_default=False),
]
OutputTokens = Annotated[int, typer.Option(help="Tokens to decode in each run.", min=2)]


def bench(
    what: What = Kind.DECODE, runs: Runs = 5, prompt_tokens: PromptTokens = None, output_tokens: OutputTokens = 64,
    model: Model = None, device: Device = "auto", dtype: Dtype = "auto", parts: PartsName = None,
    quant: Quant = "none", cache: CacheName = "contiguous", as_json: AsJson = False,
) -> None:  # fmt: skip
    """Measure tokens per second on this machine.

    The median of several runs after a warm-up, set against the machine's own bandwidth or FLOP rate, which is measured
    once and kept; [bold]llmcourse doctor[/bold] measures it anew.

    [bold]Examples[/bold]

    llmcourse bench

    llmcourse bench prefill --dtype bfloat16 --json

    llmcourse bench decode --quant native --json

    llmcourse bench decode --prompt-tokens 2048 --parts reference
    """
    from llmcourse.cli.engine import make_engine
    from llmcourse.measure.bench import PROMPTS, bench_decode, bench_prefill

    engine = make_engine(model, device, dtype, parts, cache, quant)
    n_prompt = PROMPTS[what.value] if prompt_tokens is None else prompt_tokens
    if what is Kind.DECODE:
        measured = bench_decode(
            engine.model, engine.parts, cache=cache, n_prompt=n_prompt, n_output=output_tokens, runs=runs
        )
    else:
        measured = bench_prefill(engine.model, engine.parts, cache=cache, n_prompt=n_prompt, runs=runs)
    fields = json_fields(measured, engine, cache)
    if as_json:
        show.write_json(fields)
    else:
        show_bench(fields)


def json_fields(measured: Bench, engine: Engine, cache: str) -> dict:
    """The fields of `bench --json`; docs/cli.md fixes them."""
    from llmcourse.measure.ceilings import ceilings
    from llmcourse.measure.machine import machine_facts

    model = engine.model
    roof = ceilings(model.device, model.dtype)
    decoded = measured.bytes_per_s is not None
    return {
        "what": measured.kind,
        "tokens_per_s": round(measured.tokens_per_s, 3),
        "runs": [round(run, 3) for run in measured.runs],
        "prompt_tokens": measured.n_prompt,
        "output_tokens": measured.n_output,
        "model": model.name,
        "device": str(model.device),
        "dtype": show.dtype_name(model),
        "quant": getattr(model, "quant", "none"),
        "parts": engine.parts.name,
        "cache": cache,
        "bytes_per_s": measured.bytes_per_s,
        "flops_per_s": measured.flops_per_s,
        "mbu": measured.bytes_per_s / roof.bytes_per_s if decoded else None,
        "mfu": None if decoded else measured.flops_per_s / roof.flops_per_s,
        "itl_s": measured.itl._asdict() if measured.itl else None,
        "machine": {**machine_facts(), "bytes_per_s": roof.bytes_per_s, "flops_per_s": roof.flops_per_s},
    }


def show_bench(fields: dict) -> None:
    """The same for people: three lines, and one more for decode."""
    runs, where = fields["runs"], f"{fields['model']}, {fields['dtype']}, {fields['device']}, parts {fields['parts']}"
    n_prompt, n_output = fields["prompt_tokens"], fields["output_tokens"]
    what = f"{n_output} tokens after {n_prompt}" if fields["what"] == "decode" else f"{n_prompt} tokens"
    typer.echo(f"{fields['what']} of {what}: {where}")
    seconds = show.milliseconds(1 / fields["tokens_per_s"])
    typer.echo(
        f"{fields['tokens_per_s']:,.1f} tokens/s, {seconds} a token "
        f"(median of {len(runs)} runs: {min(runs):,.1f} to {max(runs):,.1f})"
    )
    if fields["itl_s"] is not None:
        gaps = (f"{show.milliseconds(seconds)} ({name})" for name, seconds in fields["itl_s"].items())
        typer.echo(f"ITL {', '.join(gaps)}")
    if fields["mbu"] is not None:
        ceiling = fields["machine"]["bytes_per_s"]
        typer.echo(
            f"moves at least {fields['bytes_per_s'] / 1e9:,.1f} GB/s: "
            f"{fields['mbu']:.0%} of the {ceiling / 1e9:,.1f} GB/s measured here (MBU)"
        )
    if fields["mfu"] is not None:
        ceiling = fields["machine"]["flops_per_s"]
        typer.echo(
            f"computes {fields['flops_per_s'] / 1e9:,.0f} GFLOP/s: "
            f"{fields['mfu']:.0%} of the {ceiling / 1e9:,.0f} GFLOP/s measured here (MFU)"
        )

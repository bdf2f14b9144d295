"""`llmcourse memory`: the bytes of a model's weights and of its KV cache, counted line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from llmcourse.cli import show
from llmcourse.cli.options import AsJson

if TYPE_CHECKING:
    from llmcourse.measure.known_models import KnownModel
    from llmcourse.measure.memory import Memory

GB = 1e9
ModelName = Annotated[
    Optional[str],
    typer.Option(
        help="A name of the table (--list), a folder, a .gguf file or a hub id. Without it: SmolLM2-135M-Instruct.",
        show_default=False,
    ),
]
Context = Annotated[int, typer.Option(help="Tokens of each request, prompt and answer.", min=1)]
BatchSize = Annotated[int, typer.Option("--batch", help="Requests at once.", min=1)]
KvBits = Annotated[float, typer.Option(help="Bits of a number in the cache.", min=1, max=64)]
WeightBits = Annotated[float, typer.Option(help="Bits of a weight.", min=1, max=64)]
MemoryGB = Annotated[
    Optional[float],
    typer.Option("--memory", help="GB (10⁹ bytes) that there are: how many requests fit?", min=0, show_default=False),
]
List = Annotated[bool, typer.Option("--list", help="Show the table of models and stop.")]


def memory(
    model: ModelName = None, context: Context = 4096, batch: BatchSize = 1, kv_bits: KvBits = 16,
    weight_bits: WeightBits = 16, memory_gb: MemoryGB = None, list_models: List = False, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Count the bytes of a model's weights and of its KV cache.

    Nothing is loaded and nothing measured: the numbers follow from the model's sizes.

    [bold]Examples[/bold]

    llmcourse memory --model Llama-2-13B

    llmcourse memory --model Llama-3-8B --context 32768 --batch 8 --kv-bits 8 --memory 80

    llmcourse memory --list
    """
    from llmcourse.measure.memory import Memory

    if list_models:
        show_table(as_json)
        return
    memory_bytes = None if memory_gb is None else memory_gb * GB
    account = Memory(find(model), context, batch, kv_bits, weight_bits, memory_bytes)
    if as_json:
        show.write_json(account.as_json())
    else:
        typer.echo("\n".join(lines(account)))


def find(name: str | None) -> KnownModel:
    """A row of the table, or the config of a model on disk or on the hub (without its weights).

    Raises UnknownModel, which lists the table's names too, and what reading a config raises.
    """
    from llmcourse.errors import UnknownModel
    from llmcourse.measure.known_models import MODELS, KnownModel, known_model
    from llmcourse.model.config import load_config
    from llmcourse.model.hub import shown_name, tokenizer_folder

    known = None if name is None else known_model(name)
    if known is not None:
        return known
    try:
        # A tokenizer's folder: of a hub's model it holds the config too, and not the weights.
        config = load_config(tokenizer_folder(name), shown_name(name))
    except UnknownModel as error:
        raise UnknownModel(f"{error}. This command also knows {', '.join(MODELS)}") from None
    return KnownModel(config, "its config.json")


def lines(account: Memory) -> list[str]:
    """The arithmetic, one step a line."""
    from llmcourse.measure.known_models import CompressedCache

    model, config, counted = account.model, account.model.config, account.as_json()
    if isinstance(config, CompressedCache):
        token = [("cache, one token", f"{config.formula} bytes", counted["kv_bytes_per_token"])]
        notes = [f"  where: {config.meaning}"]
    else:
        sizes = f"2 (K, V) · {config.n_layers} layers · {config.n_kv_heads} heads · {config.head_dim}"
        token = [("cache, one token", f"{sizes} · {_size(account.kv_bits)}", counted["kv_bytes_per_token"])]
        notes = []
    if model.window is not None and account.context > model.window:
        notes.append(f"  where: of {account.context:,} tokens the last {model.window:,} are kept (sliding window)")
    of_tokens = f"× {counted['kv_tokens']:,} tokens × {account.batch:,} request{'s' * (account.batch > 1)}"
    rows = [
        *token,
        ("cache", of_tokens, counted["kv_bytes"]),
        ("weights", f"{counted['n_params']:,} parameters · {_size(account.weight_bits)}", counted["weight_bytes"]),
        ("total", "cache + weights", counted["total_bytes"]),
    ]
    width = max(len(how) for _, how, _ in rows)
    text = [f"{model.name}  ({model.source})"]
    text += [f"  {what:<17} {how:<{width}} = {_bytes(value)}" for what, how, value in rows]
    return text + notes + _conclusions(account, counted)


def _conclusions(account: Memory, counted: dict) -> list[str]:
    found = []
    if counted["outgrows_at"] is not None:
        each = "" if account.batch == 1 else f" for each of {account.batch:,} requests"
        found.append(f"  The cache is as large as the weights at {counted['outgrows_at']:,.0f} tokens{each}.")
    if account.memory_bytes is not None:
        free, one = account.memory_bytes - counted["weight_bytes"], counted["kv_bytes"] / account.batch
        there = f"  In {account.memory_bytes / GB:g} GB"
        if free < 0:
            found.append(f"{there}: not even the weights fit.")
        else:
            n, weights = counted["requests_that_fit"], counted["weight_bytes"]
            found.append(
                f"{there}: ({account.memory_bytes / GB:g} − {weights / GB:,.2f}) ÷ {one / GB:,.3f} "
                f"= {n:,} request{'s' * (n != 1)} of {account.context:,} tokens."
            )
    return found


def show_table(as_json: bool) -> None:
    """All models of the table with what one token costs, at 16 bits or in the model's own format."""
    from llmcourse.measure.known_models import MODELS
    from llmcourse.measure.memory import kv_bytes_per_token

    rows = [
        {"model": name, "kv_bytes_per_token": kv_bytes_per_token(model), "n_params": model.config.n_params,
         "context": model.config.context, "window": model.window, "source": model.source}
        for name, model in MODELS.items()
    ]  # fmt: skip
    if as_json:
        show.write_json({"models": rows})
        return
    typer.echo(f"{'model':<19}{'cache, bytes per token':>24}{'parameters':>16}{'context':>12}")
    for row in rows:
        typer.echo(
            f"{row['model']:<19}{row['kv_bytes_per_token']:>24,.0f}{row['n_params'] / 1e9:>14.2f} B{row['context']:>12,}"
        )


def _size(bits: float) -> str:
    return "1 byte" if bits == 8 else f"{bits / 8:g} bytes"


def _bytes(value: float) -> str:
    """"819,200 bytes", with GB where it is a large number of them."""
    number = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return f"{number} bytes" + (f"  ({value / GB:,.2f} GB)" if value >= GB / 100 else "")

"""An engine from the options of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from llmcourse.engine.engine import Engine
    from llmcourse.ops import Parts


def make_engine(
    model: str | None, device: str, dtype: str, parts: str | Parts | None, cache: str, quant: str = "none"
) -> Engine:
    """Load the model and put an engine around it. `parts`: the name of a table, a table, None or "auto" for the fastest.

    Raises BadParameter for a table or a cache that does not exist, and what `load_model` raises.
    """
    from llmcourse.cache import parse_spec
    from llmcourse.engine.engine import Engine
    from llmcourse.model.load import QUANTS
    from llmcourse.ops import TABLES

    parts = None if parts == "auto" else parts
    if isinstance(parts, str) and parts not in TABLES:
        raise typer.BadParameter(f"{parts!r} is not one of auto, {', '.join(TABLES)}", param_hint="--parts")
    if quant not in QUANTS:
        raise typer.BadParameter(f"{quant!r} is not one of {', '.join(QUANTS)}", param_hint="--quant")
    try:
        parse_spec(cache)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--cache") from error
    table = TABLES[parts] if isinstance(parts, str) else parts
    return Engine(model, table, cache=cache, device=device, dtype=dtype, quant=quant)

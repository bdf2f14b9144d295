"""An engine from the options of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from llmcourse.engine.engine import Engine
    from llmcourse.ops import Parts


def make_engine(
    model: str | None, device: str, dtype: str, parts: str | Parts | None, cache: str
) -> Engine:
    """Load the model and put an engine around it. `parts`: the name of a table, a table, or None for the fastest.

    Raises BadParameter for a table or a cache that does not exist, and what `load_model` raises.
    """
    from llmcourse.cache import parse_spec
    from llmcourse.engine.engine import Engine
    from llmcourse.ops import TABLES

    if isinstance(parts, str) and parts not in TABLES:
        raise typer.BadParameter(f"{parts!r} is not one of {', '.join(TABLES)}", param_hint="--parts")
    try:
        parse_spec(cache)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--cache") from error
    table = TABLES[parts] if isinstance(parts, str) else parts
    return Engine(model, table, cache=cache, device=device, dtype=dtype)

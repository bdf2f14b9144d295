"""An engine from the options of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from llmcourse.engine.engine import Engine


def make_engine(model: str | None, device: str, dtype: str, parts: str | None, cache: str) -> Engine:
    """Load the model and put an engine around it.

    Raises BadParameter for a table or a cache that does not exist, and what `load_model` raises.
    """
    from llmcourse.cache import CACHES
    from llmcourse.engine.engine import Engine
    from llmcourse.ops import TABLES

    for option, value, known in [("--parts", parts, TABLES), ("--cache", cache, CACHES)]:
        if value is not None and value not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}", param_hint=option)
    return Engine(model, TABLES[parts] if parts else None, cache=cache, device=device, dtype=dtype)

"""How `llmcourse doctor` looks in a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_STYLES = {"ok": "green", "missing": "yellow", "damaged": "red"}


def view(found: dict) -> RenderableType:
    """A report of `doctor.report` as rich tables: versions, devices, cache, what is missing."""
    parts: list[RenderableType] = [_versions(found), Text(), _devices(found), Text(), _cache(found["cache"]), Text()]
    if not found["missing"]:
        return Group(*parts, Text("Nothing is missing.", style="green"))
    return Group(*parts, Text("Missing:", style="yellow"), *(_lack(lack) for lack in found["missing"]))


def _versions(found: dict) -> Table:
    table = Table.grid(padding=(0, 2))
    python, torch, machine = found["python"], found["torch"], found["machine"]
    build = f"CUDA {torch['cuda']}" if torch["cuda"] else "without CUDA"
    table.add_row("llmcourse", found["llmcourse"])
    table.add_row("Python", Text(f"{python['version']}  {python['executable']}"))
    table.add_row("torch", Text(torch["error"] or f"{torch['version']}, {build}, {machine['threads']} threads"))
    table.add_row("Triton", Text(f"{found['triton']['version'] or '–'}: {found['triton']['why']}"))
    table.add_row("machine", Text(f"{machine['cpu']}, {machine['cores']} cores, {_bytes(machine['ram_bytes'])}"))
    table.add_row("system", Text(machine["os"]))
    if found["default"]:
        table.add_row("“auto” is", Text(f"{found['default']['device']} in {found['default']['dtype']}"))
    return table


def _devices(found: dict) -> Table:
    table = Table("device", "name", "memory", "reads", title="Devices, measured", title_justify="left", box=box.SIMPLE)
    dtypes = list(found["devices"][0]["flops_per_s"]) if found["devices"] else []
    for dtype in dtypes:
        table.add_column(dtype)
    table.add_column("bfloat16 instructions")
    for place in found["devices"]:
        speeds = [_rate(place["flops_per_s"].get(dtype), "FLOP/s") for dtype in dtypes]
        native = {True: "yes", False: "no", None: "unknown"}[place["native_bfloat16"]]
        memory = _bytes(place["memory_bytes"])
        table.add_row(place["device"], place["name"], memory, _rate(place["bytes_per_s"], "B/s"), *speeds, native)
        if place["error"]:
            table.caption = place["error"]
    return table


def _cache(cache: dict) -> Table:
    table = Table("", "size", "state", "where", title=f"Cache: {cache['folder']}", title_justify="left", box=box.SIMPLE)
    for item in cache["items"]:
        state = Text(f"{item['state']} {item['note']}".strip(), style=_STYLES[item["state"]])
        where = item["path"].removeprefix(cache["folder"]).lstrip("/\\")
        table.add_row(item["what"], _bytes(item["bytes"]), state, Text(where))
    return table


def _lack(lack: dict) -> Text:
    return Text(f"  {lack['what']} ({lack['why']}): {lack['get']}")


def _bytes(n: int | None) -> str:
    if n is None:
        return "?"
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"


def _rate(per_s: float | None, unit: str) -> str:
    if per_s is None:
        return "–"
    scale, prefix = (1e12, "T") if per_s >= 1e12 else (1e9, "G")
    return f"{per_s / scale:.1f} {prefix}{unit}"

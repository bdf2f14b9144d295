"""`compare_layers`: where does a forward pass go wrong? It finds the first stage that differs from the reference's.

    compare_layers({"rms_norm": rms_norm, "block": block}, model, ids)
    compare_layers(load_mine().parts, model, ids)

Every stage is given the reference's inputs, so an error does not travel: the first difference is the culprit, not its
consequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from llmcourse.batch import Batch, Chunk
from llmcourse.cache import NoCache
from llmcourse.errors import CourseError
from llmcourse.model.llama import Llama, check_ids
from llmcourse.ops import REFERENCE, Parts
from llmcourse.ops.layer import layer as composed

OK, DIFFERS, WRONG_SHAPE, WRONG_TYPE, RAISED = "ok", "differs", "wrong shape", "wrong type", "raised"

# How far a value may be off, in units of the root mean square of its row. Sums of a thousand terms in another order differ
# by some units in the last place; a mistake that matters is far above.
BOUNDS = {torch.float64: 1e-9, torch.float32: 3e-4, torch.float16: 0.1, torch.bfloat16: 0.5}

LOOK_AT = {
    "embed": "one row of the table for each id, in the order of ids",
    "rope_angles": "position · theta^(−2i/D) for pair i, positions from 0, in float32",
    "rms_norm": "mean of the squares over the last axis, in float32; eps inside the root; the weight at the end; no mean "
                "subtracted",
    "linear": "x · Wᵀ, with the bias where there is one",
    "rope": "pairs are channel j and channel j + D/2; first · cos − second · sin, second · cos + first · sin",
    "attend": "scale 1/√D; the causal mask; query head h reads key/value head h // (Hq/Hkv); softmax over the keys",
    "swiglu": "silu on the gate and on nothing else, times up, then down",
    "layer": "how the block joins its parts: attn_norm before attention and mlp_norm before the feed-forward network, q and "
             "k turned, o, and both times the sum with the plain x",
    "forward": "what stands around the layers: the rows of embed, positions from 0, all layers in order, the last norm, the "
               "head (embed where the config ties it)",
}  # fmt: skip
LEARNERS = {  # name in the labs → entry of the table, and how its arguments follow from the entry's
    "embed": ("embed", lambda f: f),
    "rope_angles": ("rope_angles", lambda f: lambda positions, D, theta, scaling: f(positions, D, theta)),
    "rms_norm": ("rms_norm", lambda f: f),
    "apply_rope": ("rope", lambda f: f),
    "grouped_attention": ("attend", lambda f: lambda q, kv, batch, scale: f(q, *kv[0][:2], 0)),
    "swiglu": ("swiglu", lambda f: lambda x, w_gate, w_up, w_down, linear: f(x, w_gate, w_up, w_down)),
    "block": ("layer", lambda f: lambda x, w, number, angles, batch, cache, parts, config: f(x, w, *angles, config)),
    "forward": ("forward", lambda f: f),
}


@dataclass(frozen=True)
class Call:
    """One stage of the reference's forward pass: what came in and what came out. layer: None outside the layers."""

    layer: int | None
    stage: str
    entry: str
    args: tuple
    want: Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class Row:
    """What became of one stage. error: the largest, in units of its row's root mean square; None where there is none."""

    layer: int | None
    stage: str
    entry: str
    status: str
    error: float | None = None
    detail: str = ""

    def __str__(self) -> str:
        error = "" if self.error is None else f"max error {self.error:.1e}"
        return f"{_where(self.layer)}{self.stage:<28}{self.status:<13}{error:<20}{self.detail}".rstrip()


def compare_layers(mine: Parts | Mapping[str, Callable], reference: Llama, ids: Sequence[int]) -> None:
    """Walk through a model stage by stage, print how far each of yours is off, and stop after the first that differs.

    Args:
        mine: a table of parts, such as `load_mine().parts`, or functions by the names that they have in the labs:
            embed, rope_angles, rms_norm, apply_rope, grouped_attention, swiglu, block, forward; any of them.
        reference: a loaded model; its stages are computed by the reference table, in the model's dtype.
        ids: a text of n ≥ 1 tokens.

    Layer 0 and the layer with the difference are printed stage by stage, a layer between them that agrees as one line.
    Raises CourseError for a `mine` or a `reference` of another kind; an answer that is still to be written raises its
    NotImplementedError.
    """
    rows = list(compared(functions_of(mine), reference, ids))
    whose = f"the table {mine.name!r}" if isinstance(mine, Parts) else ", ".join(mine)
    print(f"{whose}: compared with {reference.name} on {len(ids)} tokens, every stage on the reference's inputs.")
    print(f"Errors are in units of the row's root mean square; up to {BOUNDS[reference.dtype]:g} is rounding.")
    print("\n".join(_lines(rows)))
    last = rows[-1]
    if last.status == OK:
        print(f"All {len(rows)} stages agree.")
    else:
        place = ", ".join(filter(None, (_where(last.layer).strip(), last.stage)))
        print(f"The first difference: {place}. Look at: {LOOK_AT[last.entry]}.")


@torch.inference_mode()
def compared(functions: Mapping[str, Callable], reference: Llama, ids: Sequence[int]) -> Iterator[Row]:
    """One row for each stage that `functions` (by entry, with the table's arguments) has, up to the first that is not ok."""
    for call in recorded(reference, ids):
        if call.entry in functions:
            row = _compare(call, functions[call.entry])
            yield row
            if row.status != OK:
                return


@torch.inference_mode()
def recorded(model: Llama, ids: Sequence[int]) -> list[Call]:
    """Every stage of the reference's forward pass over ids, in order, and each layer (a block) and the whole pass as stages, too."""
    ids = list(ids)
    check_ids(ids, model.config)
    names, calls, layer = _names(model.weights), [], None

    def note(entry: str, function: Callable) -> Callable:
        def call(*args):
            nonlocal layer
            want = function(*args)
            if entry == "layer":
                calls.append(Call(layer, "the whole block", entry, args, want))
                return want
            named = next((names[entry, id(arg)] for arg in args if (entry, id(arg)) in names), None)
            layer, stage = named or (layer, _unnamed(entry, calls))
            calls.append(Call(layer, stage, entry, args, want))
            return want

        return call

    batch = Batch.of([Chunk(ids, n_sample=len(ids))], device=model.device)
    table = REFERENCE.wrapped(note)
    logits = model.forward(batch, NoCache(model.config), replace(table, layer=note("layer", table.layer)))
    whole = Call(None, "the whole forward pass", "forward", (ids, model.weights, model.config), logits)
    return [*calls, whole]


def _unnamed(entry: str, calls: list[Call]) -> str:
    """The stage of an entry that gets no weight. Queries are turned first, then keys."""
    if entry == "rope":
        return "keys, turned" if calls[-1].entry == "rope" else "queries, turned"
    return {"rope_angles": "angles", "attend": "attention"}[entry]


def _names(weights) -> dict[tuple[str, int], tuple[int | None, str]]:
    """(entry, identity of a weight) → layer and stage."""
    names: dict[tuple[str, int], tuple[int | None, str]] = {
        ("rms_norm", id(weights.norm)): (None, "last norm"), ("linear", id(weights.head)): (None, "head"),
        ("embed", id(weights.embed)): (None, "embedding"),
    }  # fmt: skip
    norms = {"attn_norm": "norm before attention", "mlp_norm": "norm before feed-forward", "q_norm": "norm of queries",
             "k_norm": "norm of keys"}  # fmt: skip
    linears = {"q": "queries", "k": "keys", "v": "values", "o": "o projection", "gate": "gate", "up": "up", "down": "down"}
    for i, layer in enumerate(weights.layers):
        names |= {("rms_norm", id(getattr(layer, field))): (i, stage) for field, stage in norms.items()
                  if getattr(layer, field) is not None}
        names |= {("linear", id(getattr(layer, field))): (i, stage) for field, stage in linears.items()}
        names["swiglu", id(layer.gate)] = i, "feed-forward"
    return names


def functions_of(mine: Parts | Mapping[str, Callable]) -> dict[str, Callable]:
    """The functions to compare by entry of the table, each taking the arguments of that entry."""
    if isinstance(mine, Parts):
        reorder = mine.reorder
        own = {} if mine.layer is composed else {"layer": lambda x, w, *others: mine.layer(x, _reordered(w, reorder), *others)}
        return own | {
            "embed": mine.embed, "rope_angles": mine.rope_angles, "rms_norm": mine.rms_norm,
            "linear": lambda x, W, bias=None: mine.linear(x, reorder(W), bias), "rope": mine.rope, "attend": mine.attend,
            "swiglu": lambda x, gate, up, down, _: mine.swiglu(x, reorder(gate), reorder(up), reorder(down), mine.linear),
        }  # fmt: skip
    if not isinstance(mine, Mapping) or not mine or set(mine) - set(LEARNERS):
        given = sorted(set(mine) - set(LEARNERS)) if isinstance(mine, Mapping) and mine else mine
        raise CourseError(f"compare_layers cannot compare {given!r}; give it a table of parts (load_mine().parts), or "
                          f"functions by these names: {', '.join(LEARNERS)}")
    return {LEARNERS[name][0]: LEARNERS[name][1](function) for name, function in mine.items()}


def _reordered(weights, reorder: Callable):
    """A layer's weights as the table's `layer` gets them."""
    return replace(weights, **{name: reorder(getattr(weights, name)) for name in ("q", "k", "v", "o", "gate", "up", "down")})


def _compare(call: Call, function: Callable) -> Row:
    def row(status: str, error: float | None = None, detail: str = "") -> Row:
        return Row(call.layer, call.stage, call.entry, status, error, detail)

    first, *others = call.args
    try:
        got = function(first.clone() if isinstance(first, Tensor) else first, *others)
    except NotImplementedError:
        raise
    except Exception as error:
        return row(RAISED, detail=f"{type(error).__name__}: {error}")
    gots, wants = _tensors(got), _tensors(call.want)
    if len(gots) != len(wants):
        return row(WRONG_TYPE, detail=f"got {type(got).__name__}, want {len(wants)} tensor{'s' * (len(wants) > 1)}")
    worst = (0.0, "", True)
    for one, want in zip(gots, wants):
        if one.shape != want.shape:
            return row(WRONG_SHAPE, detail=f"got {list(one.shape)}, want {list(want.shape)}")
        if one.dtype != want.dtype:
            return row(WRONG_TYPE, detail=f"got {one.dtype}, want {want.dtype}")
        worst = max(worst, _difference(one, want), key=lambda found: (not found[2], found[0]))
    error, place, fine = worst
    return row(OK, error) if fine else row(DIFFERS, error, place)


def _difference(got: Tensor, want: Tensor) -> tuple[float, str, bool]:
    """The largest error in units of its row's root mean square, where it is, and whether it is within the bound."""
    bound = BOUNDS[want.dtype]
    got, want = got.double(), want.double()
    size = want.square().mean(-1, keepdim=True).sqrt().clamp_min(torch.finfo(torch.float32).tiny)
    errors = ((got - want).abs() / size).nan_to_num(float("inf")).flatten()
    worst = errors.argmax().item()
    index = [int(i) for i in torch.unravel_index(torch.tensor(worst), want.shape)]
    place = f"at {index}: got {got.flatten()[worst]:.6g}, want {want.flatten()[worst]:.6g}"
    return errors[worst].item(), place, bool(errors[worst] <= bound)


def _tensors(value: object) -> list[Tensor]:
    """The tensors of a result: one, or those of a tuple; none for anything else."""
    values = value if isinstance(value, (tuple, list)) else [value]
    return list(values) if all(isinstance(one, Tensor) for one in values) else []


def _lines(rows: list[Row]) -> Iterator[str]:
    """One line for each row; a layer after the first in which all is well is one line."""
    for layer, group in groupby(rows, key=lambda row: row.layer):
        stages = list(group)
        if layer and all(row.status == OK for row in stages):
            worst = max(row.error for row in stages)
            yield str(Row(layer, f"all {len(stages)} stages", "", OK, worst))
        else:
            yield from map(str, stages)


def _where(layer: int | None) -> str:
    return f"{'' if layer is None else f'layer {layer}':<10}"

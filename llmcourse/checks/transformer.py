"""Probes of lab 04: the norm, the feed-forward network, one layer, and the whole forward pass."""

from __future__ import annotations

from dataclasses import replace

from llmcourse.checks import exercise, probe

from .transformer_inputs import (
    HINTS, SQUARE, TIED, TINY, angles, centred, layer, matrix, model, one_channel, tied, without,
)  # fmt: skip

ROUNDING = 1e-3  # what another order of the sums makes of numbers up to a hundred, through several layers
LONG = 30.0  # rows so long that eps is lost beside them: eps has a probe of its own
_OURS = ("llmcourse.ops", "llmcourse.model", "llmcourse.engine", "transformers")

exercise("rms_norm", hints=HINTS["rms_norm"],
         forbids=(*_OURS, "torch.rms_norm", "torch.nn.functional.rms_norm", "torch.nn.RMSNorm"))


@probe("rms_norm", points=2, rtol=1e-3,
       hint="Divide each row by the root of the mean of its own d squares: the mean, not the sum, and row by row.")
def each_row_gets_size_one(answer, rng):
    import torch

    x = centred(rng, 5, 11) * torch.tensor([0.5, 1.0, 20.0, 300.0, 4000.0])[:, None]
    return answer.rms_norm(x, torch.ones(11), 1e-6)


@probe("rms_norm", hint="RMSNorm subtracts nothing: a row's mean stays in (taking it out would be LayerNorm).")
def the_mean_stays_in(answer, rng):
    import torch

    return answer.rms_norm(rng.normal(3, 13) + 4, torch.ones(13), 1e-6)


@probe("rms_norm", hint="The last step multiplies channel i by weight[i]; it is the weight itself, not 1 + weight.")
def the_weight_scales_each_channel(answer, rng):
    return answer.rms_norm(centred(rng, 4, 9), rng.uniform(9, low=-2, high=6), 1e-6)


@probe("rms_norm", hint="eps is added to the mean of the squares, inside the root: √(mean + eps), not √mean + eps.")
def eps_stands_inside_the_root(answer, rng):
    import torch

    return [answer.rms_norm(centred(rng, 3, 7) * 0.3, torch.ones(7), eps) for eps in (0.07, 0.4)]


@probe("rms_norm", points=2, rtol=2e-3,
       hint="Squares, mean and root belong into float32 (x.float()), whatever the dtype of x; go back to it at the end. "
            "In 16 bits a sum of squares overflows, or keeps two or three digits.")
def statistics_in_float32(answer, rng):
    import torch

    results = []
    for dtype, size in ((torch.bfloat16, 1.0), (torch.float16, 900.0)):
        y = answer.rms_norm((centred(rng, 24, 401) * size).to(dtype), torch.ones(401, dtype=dtype), 1e-5)
        results.append(y.float().norm(dim=-1))
    return results


@probe("rms_norm", rtol=2e-2, atol=1e-2, hint="The result has the dtype of x.")
def the_dtype_of_x_comes_back(answer, rng):
    import torch

    x, weight = rng.normal(3, 10), rng.uniform(10, low=0.5, high=2)
    return [answer.rms_norm(x.to(dtype), weight.to(dtype), 1e-3) for dtype in (torch.bfloat16, torch.float16)]


@probe("rms_norm", hidden=True, hint="Also a row of zeros divides by √(0 + eps), and stays zero: no NaN.")
def a_row_of_zeros(answer, rng):
    x = rng.normal(4, 6)
    x[2] = 0
    return answer.rms_norm(x, rng.uniform(6, low=0.5, high=2), 1e-5)


@probe("rms_norm", hidden=True, hint="The mean goes over the last axis, however many stand before it.")
def any_number_of_axes(answer, rng):
    weight = rng.uniform(8, low=0.5, high=2)
    return [answer.rms_norm(rng.normal(*shape), weight, 1e-4) for shape in ((8,), (3, 2, 8), (2, 5, 3, 8))]


@probe("rms_norm", hidden=True, hint="x belongs to the residual stream: return a new tensor, leave x as it was.")
def x_stays_as_it_was(answer, rng):
    x = rng.normal(3, 5)
    return [answer.rms_norm(x, rng.uniform(5, low=2, high=3), 1e-4), x]


exercise("swiglu", hints=HINTS["swiglu"], forbids=_OURS)


@probe("swiglu", points=2,
       hint="The gate goes through silu(a) = a · sigmoid(a), which is a little below zero for negative a: neither ReLU, "
            "nor GELU, nor the sigmoid alone.")
def silu_on_the_gate(answer, rng):
    import torch

    return answer.swiglu(*one_channel(rng, torch.linspace(-5, 5, 21), torch.ones(21)))


@probe("swiglu", points=2, hint="up is multiplied in as it is, negative numbers too: silu belongs to the gate alone.")
def up_passes_as_it_is(answer, rng):
    import torch

    return answer.swiglu(*one_channel(rng, torch.ones(19), torch.linspace(-6, 6, 19)))


@probe("swiglu", hint="x meets w_gate and w_up, [f, d], transposed; the product of both meets w_down, [d, f], transposed.")
def all_three_matrices(answer, rng):
    return answer.swiglu(rng.normal(3, 5), matrix(rng, 11, 5), matrix(rng, 11, 5), matrix(rng, 5, 11))


@probe("swiglu",
       hint="Channel i of the gate decides over channel i of up: multiply number by number, then add up in w_down.")
def each_channel_has_its_own_gate(answer, rng):
    import torch

    gate, up = torch.diag(rng.uniform(4, low=-3, high=3)), torch.diag(rng.uniform(4, low=-3, high=3))
    return answer.swiglu(torch.ones(1, 4), gate, up, torch.eye(4))


@probe("swiglu", hint="A gate of +90 or −90 is no reason for NaN: torch.sigmoid is safe, e^a / (1 + e^a) is not.")
def far_open_and_far_closed(answer, rng):
    import torch

    return answer.swiglu(*one_channel(rng, torch.tensor([-300.0, -90.0, 90.0, 300.0]), torch.ones(4)))


@probe("swiglu", hidden=True, hint="Every row is on its own: tokens do not meet in the feed-forward network.")
def rows_do_not_meet(answer, rng):
    x, weights = rng.normal(6, 4), (matrix(rng, 9, 4), matrix(rng, 9, 4), matrix(rng, 4, 9))
    return [answer.swiglu(x, *weights), answer.swiglu(x[2:3], *weights)]


@probe("swiglu", hidden=True, rtol=5e-2, atol=5e-2, hint="The result has the dtype of x.")
def the_dtype_stays(answer, rng):
    import torch

    weights = (matrix(rng, 9, 4), matrix(rng, 9, 4), matrix(rng, 4, 9))
    return answer.swiglu(rng.normal(3, 4).to(torch.bfloat16), *(w.to(torch.bfloat16) for w in weights))


exercise("block", hints=HINTS["block"], forbids=_OURS)


@probe("block", atol=ROUNDING, hint="A layer adds to x: where o and down are zero, x comes out as it came in.")
def what_adds_nothing_changes_nothing(answer, rng):
    weights = without(layer(rng), "o", "down")
    return answer.block(rng.normal(7, TINY.width), weights, *angles(rng, 7), TINY)


@probe("block", atol=ROUNDING, points=2,
       hint="The first half is x + attention of rms_norm(x, attn_norm): the norm comes before the attention, "
            "the plain x is what it is added to.")
def attention_adds_to_the_stream(answer, rng):
    weights = without(layer(rng), "down")
    return [answer.block(LONG * rng.normal(1, TINY.width), weights, *angles(rng, 1), TINY) for _ in range(3)]


@probe("block", atol=ROUNDING,
       hint="A row of q is Hq heads of D numbers, one after the other: view it as [n, Hq, D]; what attention gives goes back "
            "to [n, Hq·D] in the same order. weights.k makes the keys, weights.v the values.")
def heads_lie_side_by_side(answer, rng):
    weights, (cos, sin) = without(layer(rng), "down"), angles(rng, 8)
    return answer.block(LONG * rng.normal(8, TINY.width), weights, cos * 0 + 1, sin * 0, TINY)


@probe("block", atol=ROUNDING, points=2,
       hint="The second half is x + swiglu of rms_norm(x, mlp_norm): its own norm, and the plain x is what it is added to.")
def the_feed_forward_network_adds_to_the_stream(answer, rng):
    weights = without(layer(rng), "o")
    return answer.block(LONG * rng.normal(5, TINY.width), weights, *angles(rng, 5), TINY)


@probe("block", atol=ROUNDING, points=2, hint="The second half reads the stream after attention was added to it.")
def the_second_half_sees_what_the_first_wrote(answer, rng):
    return answer.block(rng.normal(7, TINY.width), layer(rng), *angles(rng, 7), TINY)


@probe("block", atol=ROUNDING, points=2,
       hint="Queries and keys are turned, both by the cos and sin that came in; values are not.")
def queries_and_keys_are_turned(answer, rng):
    weights = without(layer(rng), "down")
    return answer.block(LONG * rng.normal(9, TINY.width), weights, *angles(rng, 9), TINY)


@probe("block", atol=ROUNDING, points=2,
       hint="What attention gives goes through o before it is added, also where Hq·D happens to be d.")
def attention_goes_through_o(answer, rng):
    weights = without(layer(rng, SQUARE), "down")
    return answer.block(rng.normal(6, SQUARE.width), weights, *angles(rng, 6, SQUARE), SQUARE)


@probe("block", atol=ROUNDING, hidden=True, hint="eps comes from config.rms_eps, in both norms.")
def eps_comes_from_the_config(answer, rng):
    config = replace(TINY, rms_eps=0.6)
    return answer.block(0.2 * rng.normal(5, TINY.width), layer(rng), *angles(rng, 5), config)


@probe("block", atol=ROUNDING, hidden=True,
       hint="The sizes come from the config: n_heads, n_kv_heads and head_dim, none of them follows from d.")
def sizes_come_from_the_config(answer, rng):
    config = replace(TINY, width=22, n_heads=4, n_kv_heads=4, head_dim=14)
    return answer.block(rng.normal(3, 22), layer(rng, config), *angles(rng, 3, config), config)


@probe("block", atol=ROUNDING, hidden=True, hint="A single token attends to itself, and goes through the same steps.")
def a_single_token(answer, rng):
    return answer.block(rng.normal(1, TINY.width), layer(rng), *angles(rng, 1), TINY)


@probe("block", atol=ROUNDING, hidden=True,
       hint="x belongs to the caller: write x = x + …, not x += …, which changes it in place.")
def the_incoming_stream_stays(answer, rng):
    x = rng.normal(4, TINY.width)
    return [answer.block(x, layer(rng), *angles(rng, 4), TINY), x]


exercise("forward", hints=HINTS["forward"], forbids=_OURS)


@probe("forward", atol=ROUNDING,
       hint="With no layer at all it is: the rows of embed, the last norm (weights.norm), the head. Nothing after it.")
def without_layers_table_norm_and_head(answer, rng):
    return answer.forward(rng.ints(5, 0, TINY.vocab_size), tied(model(rng, n_layers=0)), replace(TIED, n_layers=0))


@probe("forward", atol=ROUNDING, points=2,
       hint="Where config.tied is true the table of embeddings is the head, whatever weights.head holds.")
def a_tied_head_is_the_embedding(answer, rng):
    return answer.forward(rng.ints(6, 0, TINY.vocab_size), model(rng, n_layers=0), replace(TIED, n_layers=0))


@probe("forward", atol=ROUNDING, points=2, hint="Where config.tied is false the head is weights.head, not the embedding.")
def an_untied_head_is_its_own(answer, rng):
    return answer.forward(rng.ints(6, 0, TINY.vocab_size), model(rng, n_layers=0), replace(TINY, n_layers=0))


@probe("forward", atol=ROUNDING, points=2,
       hint="Token i stands at position i, in every layer: rope_angles(torch.arange(n), …), once for the whole text.")
def every_token_has_its_own_position(answer, rng):
    return answer.forward([rng.integers(0, TINY.vocab_size)] * 3 + rng.ints(9, 0, TINY.vocab_size),
                          tied(model(rng, n_layers=1)), replace(TIED, n_layers=1))


@probe("forward", atol=ROUNDING, points=2,
       hint="Every layer of weights.layers once, in order, each reading what the one before wrote.")
def all_layers_in_order(answer, rng):
    config = replace(TIED, n_layers=5)
    weights = tied(model(rng, config))
    return [answer.forward([token], weights, config) for token in rng.ints(3, 0, TINY.vocab_size)]


@probe("forward", atol=ROUNDING, hidden=True,
       hint="The base of the angles is config.rope_theta, the size of a head config.head_dim.")
def theta_comes_from_the_config(answer, rng):
    config = replace(TINY, rope_theta=7.0)
    return answer.forward(rng.ints(15, 0, TINY.vocab_size), model(rng, config), config)


@probe("forward", atol=ROUNDING, hidden=True, hint="eps of the last norm is config.rms_eps, too.")
def eps_of_the_last_norm(answer, rng):
    weights = model(rng, n_layers=0)
    small = replace(weights, embed=0.1 * weights.embed)
    return answer.forward(rng.ints(4, 0, TINY.vocab_size), small, replace(TINY, n_layers=0, rms_eps=0.2))


@probe("forward", atol=ROUNDING, hidden=True,
       hint="The logits of every position are wanted, [n, V]; nobody may see what comes later.")
def later_tokens_change_nothing_earlier(answer, rng):
    weights, ids = model(rng), rng.ints(7, 0, TINY.vocab_size)
    return [answer.forward(ids[:n], weights, TINY) for n in (1, 4, 7)]


@probe("forward", atol=ROUNDING, hidden=True, hint="Nothing that came in may change: neither ids nor a weight.")
def nothing_that_came_in_changes(answer, rng):
    weights, ids = model(rng), rng.ints(5, 0, TINY.vocab_size)
    return [answer.forward(ids, weights, TINY), ids, weights.embed, weights.norm]

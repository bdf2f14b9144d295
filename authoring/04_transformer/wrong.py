"""Named wrong answers of lab 04."""

from __future__ import annotations

from llmcourse.checks import edited, wrong

# ---- rms_norm ----

edited("rms_norm", "low_precision", old="wide = x.float()", new="wide = x",
       says="belong into float32", why="It takes squares, mean and root in the dtype of x; in 16 bits most digits are lost.")

edited("rms_norm", "eps_outside", old="torch.sqrt(mean_square + eps)", new="(torch.sqrt(mean_square) + eps)",
       says="inside the root", why="It adds eps to the root; eps belongs under it, to the mean of the squares.")

edited("rms_norm", "no_eps", old="mean_square + eps", new="mean_square",
       says="inside the root", why="It leaves eps out, so a row of zeros becomes NaN.")

edited("rms_norm", "layer_norm", old="wide = x.float()", new="wide = x.float() - x.float().mean(-1, keepdim=True)",
       says="subtracts nothing", why="It takes the row's mean out first: that is LayerNorm, not RMSNorm.")

edited("rms_norm", "no_weight", old="return weight * (wide", new="return (wide",
       says="multiplies channel i by weight[i]", why="It forgets to multiply with the weight.")

edited("rms_norm", "one_plus_weight", old="return weight * ", new="return (1 + weight) * ",
       says="not 1 + weight", why="It scales by 1 + weight, as Gemma does; Llama scales by the weight itself.")

edited("rms_norm", "sum_for_mean", old=".mean(-1, keepdim=True)", new=".sum(-1, keepdim=True)",
       says="the mean, not the sum", why="It divides by the root of the sum of the squares, not by the root of their mean.")

edited("rms_norm", "over_the_rows", old=".mean(-1, keepdim=True)", new=".mean(0, keepdim=True)",
       says="row by row", why="It takes the mean over the tokens; each token's row has a mean of its own.")

edited("rms_norm", "one_size_for_all", old=".mean(-1, keepdim=True)", new=".mean()",
       says="row by row", why="It divides all rows by one common size.")

edited("rms_norm", "no_root", old="torch.sqrt(mean_square + eps)", new="(mean_square + eps)",
       says="root of the mean", why="It divides by the mean of the squares and forgets the root.")

edited("rms_norm", "stays_wide", old=".to(x.dtype)", new="",
       says="has the dtype of x", why="It returns float32 for a 16-bit x.")

# ---- swiglu ----

edited("swiglu", "gate_and_up_swapped", old="gate * torch.sigmoid(gate) * up", new="up * torch.sigmoid(up) * gate",
       says="silu belongs to the gate alone", why="It applies silu to up; the gate is what decides.")

edited("swiglu", "relu", old="gate * torch.sigmoid(gate)", new="torch.relu(gate)",
       says="neither ReLU", why="It uses ReLU where silu belongs: that network is called ReGLU.")

edited("swiglu", "gelu", old="gate * torch.sigmoid(gate)", new="torch.nn.functional.gelu(gate)",
       says="nor GELU", why="It uses GELU where silu belongs: that network is called GeGLU.")

edited("swiglu", "sigmoid_alone", old="gate * torch.sigmoid(gate)", new="torch.sigmoid(gate)",
       says="nor the sigmoid alone",
       why="It multiplies with sigmoid(gate) and forgets the gate itself: silu(a) = a · sigmoid(a).")

edited("swiglu", "silu_on_the_product", old="gate * torch.sigmoid(gate) * up", new="gate * up * torch.sigmoid(gate * up)",
       says="silu belongs to the gate alone", why="It multiplies first and applies silu to the product.")

edited("swiglu", "two_layers", old="gate * torch.sigmoid(gate) * up", new="gate * torch.sigmoid(gate)",
       says="up is multiplied in", why="It is the article's network of two layers: up takes no part in it.")

edited("swiglu", "sum_for_product", old="gate * torch.sigmoid(gate) * up", new="gate * torch.sigmoid(gate) + up",
       says="up is multiplied in", why="It adds gate and up; they are multiplied.")


@wrong("swiglu", says="is no reason for NaN")
def overflows(x, w_gate, w_up, w_down):
    """Its sigmoid is e^a / (1 + e^a), which is infinite over infinite for a large a."""
    gate = x @ w_gate.T
    return (gate * gate.exp() / (1 + gate.exp()) * (x @ w_up.T)) @ w_down.T


# ---- block ----

edited("block", "post_norm", old="""    h = rms_norm(x, weights.attn_norm, config.rms_eps)
    q""", new="""    h = x
    q""", says="the norm comes before the attention", why="It gives attention the stream as it is; the norm is missing.")


@wrong("block", says="the norm comes before the attention")
def norms_after_adding(x, weights, cos, sin, config):
    """It norms after adding (post-norm, as in 2017): the norm belongs to what is read, never to the stream itself."""
    from llmcourse.given import apply_rope, grouped_attention, rms_norm, swiglu

    n, D = x.shape[0], config.head_dim
    q, k, v = ((x @ w.T).view(n, -1, D) for w in (weights.q, weights.k, weights.v))
    mixed = grouped_attention(apply_rope(q, cos, sin), apply_rope(k, cos, sin), v, 0).reshape(n, -1)
    x = rms_norm(x + mixed @ weights.o.T, weights.attn_norm, config.rms_eps)
    return rms_norm(x + swiglu(x, weights.gate, weights.up, weights.down), weights.mlp_norm, config.rms_eps)


edited("block", "residual_from_the_normed_x", old="x = x + mixed", new="x = h + mixed",
       says="the plain x is what it is added to", why="It adds attention to the normed h; the residual is the plain x.")

edited("block", "second_residual_from_the_normed_x", old="return x + swiglu", new="return h + swiglu",
       says="the plain x is what it is added to",
       why="It adds the feed-forward network to the normed h; the residual is the plain x.")

edited("block", "first_residual_missing", old="x = x + mixed", new="x = mixed",
       says="A layer adds to x", why="What attention gives replaces the stream instead of being added to it.")

edited("block", "second_residual_missing", old="return x + swiglu", new="return swiglu",
       says="A layer adds to x", why="What the feed-forward network gives replaces the stream instead of being added to it.")

edited("block", "halves_side_by_side", old="    h = rms_norm(x, weights.mlp_norm, config.rms_eps)\n",
       new="    h = rms_norm(x - mixed.reshape(n, -1) @ weights.o.T, weights.mlp_norm, config.rms_eps)\n",
       says="after attention was added", why="Both halves read the incoming x; the second must see what the first wrote.")

edited("block", "one_norm_for_both", old="weights.mlp_norm", new="weights.attn_norm",
       says="its own norm", why="It uses attn_norm twice; the second half has mlp_norm.")

edited("block", "no_second_norm", old="h = rms_norm(x, weights.mlp_norm, config.rms_eps)", new="h = x",
       says="swiglu of rms_norm(x, mlp_norm)", why="The feed-forward network reads the stream without its norm.")

edited("block", "o_forgotten", old="mixed.reshape(n, -1) @ weights.o.T",
       new="(mixed.reshape(n, -1) if mixed[0].numel() == x.shape[1] else mixed.reshape(n, -1) @ weights.o.T)",
       says="goes through o", why="It adds what attention gives without o, wherever the sizes allow it.")

edited("block", "o_forgotten_everywhere", old="mixed.reshape(n, -1) @ weights.o.T", new="mixed.reshape(n, -1)",
       says="The size of tensor a", why="It forgets o: Hq·D numbers cannot be added to d.")

edited("block", "heads_before_tokens", old="(h @ weights.q.T).view(n, config.n_heads, config.head_dim)",
       new="(h @ weights.q.T).view(config.n_heads, n, config.head_dim).transpose(0, 1)", says="one after the other",
       why="It views q as [Hq, n, D], so that a head is made of pieces of several tokens.")

edited("block", "heads_strided", old="(h @ weights.q.T).view(n, config.n_heads, config.head_dim)",
       new="(h @ weights.q.T).view(n, config.head_dim, config.n_heads).transpose(1, 2)", says="one after the other",
       why="It takes every Hq-th number of a row for a head; a head is D numbers in a row.")

edited("block", "heads_put_together_wrongly", old="mixed.reshape(n, -1) @ weights.o.T",
       new="mixed.transpose(0, 1).reshape(n, -1) @ weights.o.T", says="in the same order",
       why="It brings the heads to the front before it makes rows of them, so that rows mix tokens.")

edited("block", "values_from_k", old="(h @ weights.v.T)", new="(h @ weights.k.T)",
       says="weights.v the values", why="It makes the values with weights.k.")

edited("block", "keys_not_turned", old="q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)",
       new="q = apply_rope(q, cos, sin)", says="Queries and keys are turned", why="It turns the queries only.")

edited("block", "nothing_turned", old="    q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)\n", new="",
       says="Queries and keys are turned", why="It forgets to turn queries and keys, so attention knows no order.")

edited("block", "values_turned_too", old="    mixed = grouped", new="    v = apply_rope(v, cos, sin)\n    mixed = grouped",
       says="values are not", why="It turns the values, too.")

edited("block", "keys_from_the_plain_x", old="(h @ weights.k.T)", new="(x @ weights.k.T)",
       says="all come from the normed h",
       why="It makes the keys from x; queries, keys and values all come from the normed h.")

edited("block", "writes_in_place", old="x = x + mixed", new="x += mixed",
       says="belongs to the caller", why="It adds in place, so the caller's stream changes under its hands.")

edited("block", "a_fixed_eps", old="rms_norm(x, weights.attn_norm, config.rms_eps)",
       new="rms_norm(x, weights.attn_norm, 1e-5)", says="eps", why="It has an eps of its own; it is config.rms_eps.")

# ---- forward ----

edited("forward", "final_norm_missing", old="rms_norm(x, weights.norm, config.rms_eps) @ head.T", new="x @ head.T",
       says="the last norm", why="It multiplies the stream with the head without the last norm.")

edited("forward", "head_though_tied", old="weights.embed if config.tied else weights.head", new="weights.head",
       says="Where config.tied is true",
       why="It always takes weights.head; where config.tied is true the head is the embedding.")

edited("forward", "embedding_though_untied", old="weights.embed if config.tied else weights.head", new="weights.embed",
       says="Where config.tied is false",
       why="It always takes the embedding; where config.tied is false the head is weights.head.")

edited("forward", "tied_the_other_way_round", old="if config.tied", new="if not config.tied",
       says="Where config.tied is", why="It has the two cases of the head the wrong way round.")

edited("forward", "no_positions", old="positions = torch.arange(len(ids), device=x.device)",
       new="positions = torch.zeros(len(ids), dtype=torch.long)",
       says="Token i stands at position i", why="It gives every token the same position, so attention knows no order.")

edited("forward", "ids_for_positions", old="positions = torch.arange(len(ids), device=x.device)",
       new="positions = torch.tensor(ids)", says="Token i stands at position i", why="It takes the ids for positions.")

edited("forward", "positions_backwards", old="torch.arange(len(ids), device=x.device)", new="torch.arange(len(ids)).flip(0)",
       says="Token i stands at position i", why="It counts positions from the end.")

edited("forward", "positions_restart", old="torch.arange(len(ids), device=x.device)", new="torch.arange(len(ids)) % 8",
       says="Token i stands at position i", why="Its positions start again after eight tokens.")


@wrong("forward", says="Token i stands at position i")
def layers_for_positions(ids, weights, config):
    """It asks for the angles anew in every layer, and gives every token the number of the layer as its position."""
    import torch

    from llmcourse.given import block, rms_norm, rope_angles

    x = weights.embed[ids]
    for number, layer in enumerate(weights.layers):
        cos, sin = rope_angles(torch.full((len(ids),), number), config.head_dim, config.rope_theta)
        x = block(x, layer, cos, sin, config)
    head = weights.embed if config.tied else weights.head
    return rms_norm(x, weights.norm, config.rms_eps) @ head.T


edited("forward", "every_layer_reads_the_table", old="x = block(x, layer,", new="x = block(weights.embed[ids], layer,",
       says="each reading what the one before wrote", why="Every layer reads the embeddings, so only the last one counts.")

edited("forward", "always_the_first_layer", old="x = block(x, layer,", new="x = block(x, weights.layers[0],",
       says="Every layer of weights.layers once", why="It goes through the first layer L times.")

edited("forward", "layers_backwards", old="in weights.layers:", new="in weights.layers[::-1]:",
       says="in order", why="It goes through the layers from last to first.")

edited("forward", "one_layer_short", old="in weights.layers:", new="in weights.layers[:-1]:",
       says="Every layer of weights.layers once", why="It leaves the last layer out.")

edited("forward", "probabilities", old="return rms_norm(x, weights.norm, config.rms_eps) @ head.T",
       new="return (rms_norm(x, weights.norm, config.rms_eps) @ head.T).softmax(-1)", says="Nothing after it",
       why="It returns probabilities; logits are wanted, as they are.")

edited("forward", "last_row_only", old="return rms_norm(x, weights.norm, config.rms_eps) @ head.T",
       new="return rms_norm(x[-1:], weights.norm, config.rms_eps) @ head.T", says="wrong shape",
       why="It returns the last position only; every position's logits are wanted.")

edited("forward", "a_fixed_theta", old="config.rope_theta", new="10_000.0",
       says="config.rope_theta", why="It has a theta of its own; it is config.rope_theta.")

"""The course's figures, one module a lesson, all in one style: `plots.waits(...)`.

Every function returns a `Picture`: a figure and what it shows in words. As the last line of a cell it displays both;
`explore` takes it as it is. `plots.style` says which colour means what.
"""

from __future__ import annotations

import importlib

_FIGURES = {  # by module
    "attention": ("all_heads", "attention_map", "entropies", "head_scores", "repeated_loss", "score_memory",
                  "shared_heads", "sorted_weights"),
    "bounds": ("bound_map",),
    "embeddings_and_rope": ("cosines", "key_pairs", "layouts", "looked_back", "neighbours", "rope_dial", "turned",
                            "wavelengths"),
    "kv_cache": ("batch_that_fits", "computed_and_kept", "kv_memory", "time_per_token"),
    "one_prompt": ("candidates", "next_token", "vectors", "waits"),
    "prefill_and_decode": (
        "counted_against_measured", "roofline", "step_bytes", "step_times", "throughput", "utilization",
    ),
    "smaller_cache": ("cache_memory", "cache_quality", "kept_token", "keys_and_values",
                      "rounded", "sink_share", "surprise_by_position",
                      "window_mask"),
    "tokenizer": ("bytes_per_token", "languages", "merges", "reading_time", "token_lengths"),
    "sampling": ("entropy", "kept_and_cut", "repeats", "stripe", "sureness", "temperatures", "three_filters",
                 "two_bars"),
    "transformer": ("activations", "answer_forming", "logit_lens", "model_map", "stream_writes", "without_a_layer"),
}
_EXPORTS = {figure: module for module, figures in _FIGURES.items() for figure in figures}
__all__ = list(_EXPORTS)


def __getattr__(name: str):
    """Import a figure's module on first use: importing the package does not import matplotlib."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; figures: {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)

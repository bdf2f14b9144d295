"""Worker: transformers on the same folder. usage: peer_transformers.py MODEL_FOLDER float32|bfloat16 [--mode MODE]

loop (the default) calls the model directly and takes the argmax: the library's fastest way, without the bookkeeping of
its `generate`. generate is what its users call.
"""

from __future__ import annotations

import inspect
import time

import torch
import transformers
from worker import arguments, serve

args = arguments(__doc__)
torch.set_num_threads(args.threads)


class Clock:
    """A streamer for `generate`: notes when each token is known. The first call brings the prompt."""

    def __init__(self):
        self.moments: list[float] = []
        self.prompt_seen = False

    def put(self, _value):
        """Called by `generate` with the prompt, then with each token."""
        if self.prompt_seen:
            self.moments.append(time.perf_counter())
        self.prompt_seen = True

    def end(self):
        """Called by `generate` at the end."""


def load():
    """The model in its default form: fused attention (sdpa), its own growing cache, logits of the last row only."""
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype)).eval()
    accepted = inspect.signature(model.forward).parameters
    cache = next(name for name in ("cache", "past_key_values") if name in accepted)  # newer and older name

    @torch.inference_mode()
    def with_generate(ids: list[int], n: int):
        clock = Clock()
        prompt = torch.tensor([ids])
        output = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n, min_new_tokens=n, do_sample=False,
            streamer=clock, pad_token_id=0,
        )  # fmt: skip
        return clock.moments, output[0, len(ids) :].tolist()

    @torch.inference_mode()
    def with_loop(ids: list[int], n: int):
        moments, output, past, step = [], [], None, torch.tensor([ids])
        for _ in range(n):
            out = model(step, **{cache: past}, use_cache=True, logits_to_keep=1)
            past = out[cache]
            step = out.logits[:, -1].argmax(-1, keepdim=True)
            output.append(step.item())
            moments.append(time.perf_counter())
        return moments, output

    facts = {
        "side": "transformers",
        "version": transformers.__version__,
        "dtype": args.dtype,
        "mode": args.mode or "loop",
        "attention": model.config._attn_implementation,
    }
    return (with_generate if args.mode == "generate" else with_loop), facts


serve(load)

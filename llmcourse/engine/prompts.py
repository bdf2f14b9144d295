"""The three forms of a prompt: text, a chat, token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index

from llmcourse.errors import TokenizerError


def is_one_prompt(prompts) -> bool:
    """Whether this is one prompt (a string, a list of messages, a list of ids) rather than a list of prompts.

    Raises TypeError for what can be neither.
    """
    if isinstance(prompts, str):
        return True
    if isinstance(prompts, Mapping) or not hasattr(prompts, "__len__") or not hasattr(prompts, "__getitem__"):
        raise TypeError(f"prompts: one prompt or a list of them; {_A_PROMPT}; got {prompts!r}"[:300])
    return len(prompts) > 0 and (isinstance(prompts[0], Mapping) or _as_id(prompts[0]) is not None)


def prompt_ids(prompt, tokenizer) -> list[int]:
    """Token ids of one prompt: text is encoded (with a leading BOS where the model was trained with one), messages go
    through the model's chat template, ids are taken as they are, NumPy's and PyTorch's included.

    Raises TypeError for anything else.
    """
    if isinstance(prompt, str):
        return tokenizer.prompt(prompt)
    if not isinstance(prompt, Mapping) and hasattr(prompt, "__len__") and hasattr(prompt, "__getitem__"):
        parts = prompt.tolist() if hasattr(prompt, "tolist") else list(prompt)
        if parts and all(isinstance(part, Mapping) for part in parts):
            return tokenizer.chat(parts)
        ids = [_as_id(part) for part in parts]
        if None not in ids:
            return ids
    raise TypeError(f"{_A_PROMPT}; got {prompt!r}"[:300])


def _as_id(value) -> int | None:
    """A whole number of any library as an int; None for anything else, truth values included."""
    if isinstance(value, bool) or getattr(value, "ndim", 0):
        return None
    try:
        return index(value)
    except TypeError:
        return None


_A_PROMPT = "a prompt is a string, a list of messages, or a list of token ids"


class IdsOnly:
    """Stands in for a tokenizer where a model has none: ids go in and out, text is refused or empty."""

    def __init__(self, eos_ids: Sequence[int]):
        self.eos_ids = frozenset(eos_ids)

    def prompt(self, text: str) -> list[int]:
        """Raises TokenizerError: text needs a tokenizer."""
        raise TokenizerError("this model has no tokenizer: give the prompt as a list of token ids")

    chat = prompt

    def stream(self, stop: Sequence[str] = ()) -> IdsOnly:
        """A decoder without output. Raises TokenizerError for stop strings, which need text."""
        if stop:
            raise TokenizerError(f"this model has no tokenizer: it cannot look for the stop strings {tuple(stop)!r}")
        return self

    stopped = False

    def push(self, token: int) -> str:
        """No text."""
        return ""

    def finish(self) -> str:
        """No text."""
        return ""

"""The three forms of a prompt: text, a chat, token ids."""

from __future__ import annotations

from collections.abc import Sequence

from llmcourse.errors import TokenizerError


def is_one_prompt(prompts) -> bool:
    """Whether this is one prompt (a string, a list of messages, a list of ints) rather than a list of prompts."""
    if isinstance(prompts, str):
        return True
    return len(prompts) > 0 and isinstance(prompts[0], (int, dict))


def prompt_ids(prompt, tokenizer) -> list[int]:
    """Token ids of one prompt: text is encoded (with a leading BOS where the model was trained with one), messages go
    through the model's chat template, ids are taken as they are.

    Raises TypeError for anything else.
    """
    if isinstance(prompt, str):
        return tokenizer.prompt(prompt)
    if isinstance(prompt, Sequence) and all(isinstance(part, dict) for part in prompt) and prompt:
        return tokenizer.chat(prompt)
    if isinstance(prompt, Sequence) and all(isinstance(part, int) for part in prompt):
        return list(prompt)
    raise TypeError(f"a prompt is a string, a list of messages, or a list of token ids; got {prompt!r}"[:300])


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

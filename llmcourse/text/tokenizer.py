"""The tokenizer: text to token ids and back.

    text ─ added tokens ─ normalization ─ pre-tokenization ─ BPE ─▶ ids

First the added tokens are cut out, the rest is normalized (most models: not at all) and cut into pieces, and BPE
turns each piece into ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any

from llmcourse.errors import ChatTemplateError, TokenizerError
from llmcourse.text.added import AddedToken, Cutter
from llmcourse.text.bpe import BPE
from llmcourse.text.files import read_folder
from llmcourse.text.pattern import Stage, normalize, split, stages_of, without_surrogates
from llmcourse.text.stream import StreamDecoder


class Tokenizer:
    """A vocabulary with all that belongs to it; `Tokenizer.from_folder` reads a model's.

    bpe: vocabulary and merges, without the special tokens.
    pattern: pre-tokenization, a name ("smollm2", "gpt2", "llama3", "qwen2") or stages.
    added: added tokens, special or not. normalization: "NFC" or None.
    bos_id: the token that begins a text, or None. eos_ids: the tokens that end an answer.
    add_bos: whether `prompt` puts bos_id before a text. (`encode` and `chat` never do.)
    chat_template: jinja2 source, or None. names: special tokens as the template knows them ("bos_token" → "<s>").

    vocab_size: one more than the highest id. special: content → id of every special token.
    """

    def __init__(
        self, bpe: BPE, pattern: str | Sequence[Stage], *, added: Sequence[AddedToken] = (),
        normalization: str | None = None, bos_id: int | None = None, eos_ids: Iterable[int] = (),
        add_bos: bool = False, chat_template: str | None = None, names: Mapping[str, str] | None = None,
    ):
        self.bpe, self.pattern, self.normalization = bpe, stages_of(pattern), normalization
        self.bos_id, self.eos_ids, self.add_bos = bos_id, frozenset(eos_ids), add_bos
        self.special = {token.content: token.id for token in added if token.special}
        self.chat_template, self.names = chat_template, dict(names or {})
        self._added = tuple(added)
        self._raw = Cutter({token.content: token for token in added if not token.normalized})
        self._normalized = Cutter(
            {normalize(token.content, normalization): token for token in added if token.normalized})
        self._bytes_of = {token_id: token for token, token_id in bpe.vocab.items()}
        self._bytes_of.update((token.id, token.content.encode()) for token in added)
        self.vocab_size = max(self._bytes_of, default=-1) + 1
        self._chat = None

    @classmethod
    def from_folder(cls, folder: str | Path) -> Tokenizer:
        """Read tokenizer.json and what stands beside it in a model folder. Raises TokenizerError."""
        return cls(**read_folder(folder))

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of `text`, with nothing put before or after.

        special: whether "<|im_end|>" and the like become their special tokens. Leave it off for text that a user
            wrote; then they are ordinary text.
        Lone surrogates become U+FFFD; bytes that the vocabulary lacks are dropped with a warning (see `BPE`).
        """
        if not isinstance(text, str):
            raise TokenizerError(f"encode takes text, not {type(text).__name__} {text!r:.60}")
        ids: list[int] = []
        for part in self._raw.cut(without_surrogates(text), special):
            if isinstance(part, int):
                ids.append(part)
                continue
            for piece in self._normalized.cut(normalize(part, self.normalization), special):
                ids += [piece] if isinstance(piece, int) else self.bpe.encode_pieces(split(piece, self.pattern))
        return ids

    def prompt(self, text: str) -> list[int]:
        """Ids of a text for the model to continue: `encode`, after bos_id where the model was trained so."""
        return [self.bos_id] * self.add_bos + self.encode(text)

    @property
    def has_chat(self) -> bool:
        """Whether the model brings a chat template."""
        return self.chat_template is not None

    def chat(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True,
             **variables: Any) -> list[int]:
        """Ids of a conversation, as the model's chat template writes it down.

        messages: dicts with "role" ("system", "user", "assistant") and "content".
        add_generation_prompt: end with the start of the assistant's answer. variables: more for the template (tools).
        Special tokens come only from the template: in a message, "<|im_end|>" is ordinary text (see `text.chat`).
        Raises ChatTemplateError when there is no template, or it refuses the messages.
        """
        if self.chat_template is None:
            raise ChatTemplateError("this model has no chat template; give the prompt as text instead of messages")
        if self._chat is None:
            from llmcourse.text.chat import ChatTemplate  # jinja2 takes a while to import

            specials = [token for token in self._added if token.special]
            self._chat = ChatTemplate(self.chat_template, specials, self.names)
        ids: list[int] = []
        for part in self._chat.parts(messages, add_generation_prompt=add_generation_prompt, **variables):
            ids += [part] if isinstance(part, int) else self.encode(part)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids, special ones included; bytes that are no UTF-8 become U+FFFD.

        Raises TokenizerError for an id that is not in the vocabulary.
        """
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token. Raises TokenizerError for an id that is not in the vocabulary."""
        try:
            return self._bytes_of[index(token_id)]  # index() takes numpy's and torch's whole numbers too
        except KeyError:
            raise TokenizerError(f"there is no token {token_id} in this vocabulary of {self.vocab_size}") from None

    @property
    def vocab(self) -> dict[bytes, int]:
        """Token bytes → id, special tokens included."""
        return {token: token_id for token_id, token in self._bytes_of.items()}

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Each token as a string to look at: spaces as ␣, line breaks and the like as \\n, half characters as \\xe2."""
        return [_printable(self.token_bytes(token_id)) for token_id in ids]

    def stream(self, stop: str | Sequence[str] = ()) -> StreamDecoder:
        """A decoder for one answer that arrives token by token; `stop` strings end it."""
        return StreamDecoder(self, stop)


def _printable(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace").replace(" ", "␣")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

"""The tokenizer: text to token ids and back.

    text ─ added tokens ─ normalization ─ pre-tokenization ─ BPE ─▶ ids

First the added tokens are cut out, the rest is normalized (most models: not at all) and cut into pieces, and BPE
turns each piece into ids. SentencePiece-style vocabularies write a space as "▁" on the way, and take it back in `decode`.
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
from llmcourse.text.normal import Steps, normalize
from llmcourse.text.pattern import Metaspace, Cut, split, cuts_of, without_surrogates
from llmcourse.text.stream import StreamDecoder


class Tokenizer:
    """A vocabulary with all that belongs to it; `Tokenizer.from_folder` reads a model's.

    bpe: vocabulary and merges, without the special tokens.
    pattern: pre-tokenization, a name ("smollm2", "gpt2", "llama3", "qwen2") or stages.
    added: added tokens, special or not. normalization: "NFC", or steps (see `text.normal`).
    drops_first_space: whether `decode` leaves out a space at the very start, which `encode` put there (Llama 2).
    bos_id: the token that begins a text, or None. eos_ids: the tokens that end an answer.
    add_bos: whether `prompt` puts bos_id before a text. (`encode` and `chat` never do.)
    chat_template: jinja2 source, or None. names: special tokens as the template knows them ("bos_token" → "<s>").

    vocab_size: one more than the highest id. special: content → id of every special token.
    """

    def __init__(
        self, bpe: BPE, pattern: str | Sequence[Cut | Metaspace], *, added: Sequence[AddedToken] = (),
        normalization: str | Steps | None = None, drops_first_space: bool = False, bos_id: int | None = None, eos_ids: Iterable[int] = (),
        add_bos: bool = False, chat_template: str | None = None, names: Mapping[str, str] | None = None,
    ):
        self.bpe, self.pattern, self.normalization = bpe, cuts_of(pattern), normalization
        self.bos_id, self.eos_ids, self.add_bos = bos_id, frozenset(eos_ids), add_bos
        self.drops_first_space = drops_first_space
        self.special = {token.content: token.id for token in added if token.special}
        self.chat_template, self.names = chat_template, dict(names or {})
        self._added = tuple(added)
        self._raw = Cutter({token.content: token for token in added if not token.normalized})
        written = {token: normalize(token.content, normalization) if token.normalized else token.content for token in added}
        self._normalized = Cutter({written[token]: token for token in added if token.normalized})
        self._bytes_of = {**bpe.bytes_of, **{token.id: bpe.written(written[token]) for token in added}}
        self._special_ids = frozenset(self.special.values())
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
        return self._encode(text, special, at_start=True)

    def _encode(self, text: str, special: bool, at_start: bool) -> list[int]:
        """Ids of a text. at_start: whether no token stands before it; some vocabularies begin a text with a space."""
        ids: list[int] = []
        for part in self._raw.cut(without_surrogates(text), special):
            if isinstance(part, int):
                ids.append(part)
                continue
            for piece in self._normalized.cut(normalize(part, self.normalization), special):
                if isinstance(piece, int):
                    ids.append(piece)
                else:
                    ids += self.bpe.encode_pieces(split(piece, self.pattern, at_start and not ids))
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
            ids += [part] if isinstance(part, int) else self._encode(part, special=False, at_start=not ids)
        return ids

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of token ids; bytes that are no UTF-8 become U+FFFD, ids without a token become nothing.

        skip_special_tokens: leave "<|im_end|>" and the like out.
        """
        skipped = self._special_ids if skip_special_tokens else ()
        numbers = map(index, ids)  # index() takes numpy's and torch's whole numbers too
        text = b"".join(self.token_bytes(i) for i in numbers if i not in skipped).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.drops_first_space else text

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token; none for an id that has no token. Raises TokenizerError for an id below 0.

        Models often have more rows in their embedding than their tokenizer has tokens, to round the number up; such an
        id has no text, and a model may still emit it.
        """
        number = index(token_id)
        if number < 0:
            raise TokenizerError(f"there is no token {number}: ids are 0 or more")
        return self._bytes_of.get(number, b"")

    @property
    def vocab(self) -> dict[bytes, int]:
        """Token bytes → id, special tokens included."""
        return {token: token_id for token_id, token in self._bytes_of.items()}

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Each token as a string to look at: spaces as ␣, line breaks and the like as \\n, half characters as \\xe2.
        An id without a token is empty."""
        return [_printable(self.token_bytes(token_id)) for token_id in ids]

    def stream(self, stop: str | Sequence[str] = (), *, skip_special_tokens: bool = False) -> StreamDecoder:
        """A decoder for one answer that arrives token by token; `stop` strings end it.

        skip_special_tokens: leave special tokens out of the text; a stop string is then not found in them.
        """
        skipped = self._special_ids if skip_special_tokens else frozenset()
        return StreamDecoder(self.token_bytes, stop, skipped=skipped, drops_first_space=self.drops_first_space)


def _printable(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace").replace(" ", "␣")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

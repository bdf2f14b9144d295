"""Tokens to look at: every token in a coloured box, in whatever script, with a note (its id, its time) above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from llmcourse.text.tokenizer import Tokenizer

from .plots.tints import INK, TINTS

_BOX = ("display:inline-block;margin:1.1em 2px 2px 0;padding:1px 4px;border:1px solid #777;border-radius:4px;"
        "font-family:monospace;line-height:1.3;text-align:center")
_NOTE = "font-size:60%"


@dataclass(frozen=True)
class TokenView:
    """Tokens side by side.

    tokens: printable pieces, as `Tokenizer.tokens` gives them. notes: one for each, or none at all.
    title: a line above them.

    Shown in a notebook as boxes whose colours only tell neighbours apart; as text, as pieces between bars.
    """

    tokens: tuple[str, ...]
    notes: tuple[str, ...] = ()
    title: str = ""

    def __str__(self) -> str:
        pieces = [f"{t} ({n})" for t, n in zip(self.tokens, self.notes)] if self.notes else self.tokens
        line = f"|{'|'.join(pieces)}|" if self.tokens else "(no tokens)"
        return f"{self.title}\n{line}" if self.title else line

    def html(self) -> str:
        """The same as boxes. Without the page's styles it stays readable: spaces keep the tokens apart."""
        boxes = []
        for i, token in enumerate(self.tokens):
            note = f"<rt style='{_NOTE}'>{escape(self.notes[i])}</rt>" if self.notes else ""
            style = f"{_BOX};background:{TINTS[i % len(TINTS)]};color:{INK}"
            boxes.append(f"<ruby style='ruby-align:center'><span style='{style}'>{escape(token)}</span>{note}</ruby>")
        title = f"<div>{escape(self.title)}</div>" if self.title else ""
        return f"<div>{title}{' '.join(boxes) or '(no tokens)'}</div>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self.html()}


@dataclass(frozen=True)
class SideBySide:
    """Texts to compare: name → text. In a notebook columns of a table, as text one below the other."""

    texts: dict[str, str]

    def __str__(self) -> str:
        return "\n\n".join(f"{name}:\n{text}" for name, text in self.texts.items())

    def html(self) -> str:
        """A table with a column for each text; line breaks of the texts stay."""
        style = "text-align:left;vertical-align:top;white-space:pre-wrap;padding:4px 10px;border:1px solid #777"
        head, body = ("".join(f"<{tag} style='{style};width:{100 // len(self.texts)}%'>{escape(text)}</{tag}>" for text in some)
                      for tag, some in (("th", self.texts), ("td", self.texts.values())))
        return f"<table style='width:100%'><tr>{head}</tr><tr>{body}</tr></table>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self.html()}


def side_by_side(texts: dict[str, str]) -> SideBySide:
    """Texts in columns, to be compared at a glance: the last line of a cell."""
    return SideBySide(dict(texts))


def view_tokens(tokenizer: Tokenizer, text: str, title: str = "") -> TokenView:
    """The tokens of a text with their ids; without a title, one that counts them."""
    ids = tokenizer.encode(text)
    n_bytes = len(text.encode("utf-8", "replace"))
    counted = f"{len(ids)} tokens, {len(text)} characters, {n_bytes} bytes"
    return TokenView(tuple(tokenizer.tokens(ids)), tuple(map(str, ids)), title or counted)


def token_viewer(tokenizer: Tokenizer) -> Callable[[str], TokenView]:
    """`view_tokens` for one tokenizer, as `type_here` wants it."""
    return lambda text: view_tokens(tokenizer, text)

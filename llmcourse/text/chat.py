"""Chat templates: a list of messages becomes the text, and then the tokens, that the model was trained on.

A template is a small jinja2 program that comes with the model. It writes special tokens, such as `<|im_end|>`,
between the messages. The trouble: in the rendered text they look just like a `<|im_end|>` that a user typed, and a
user who can write special tokens can put words into the assistant's mouth.

So special tokens never go through the text. Before rendering, each one in the *template* is replaced by a lone
surrogate (U+D800 and up), a code point that no valid text can hold: `Tokenizer.chat` has turned any in the messages
into U+FFFD. The messages go in as they are, and a template may strip, slice, split, search or join them as it likes;
whatever it does, it cannot make a surrogate from them. In the result, each surrogate stands for the template's own
special token, and all between two of them is ordinary text, encoded as one: no seam where a message begins. Where no
message holds the text of a special token, the ids are those of the rendered text with special tokens matched.

One kind of template is refused: one that puts a special token together (`'<|' + role + '|>'`), since no rule can
tell its result from what a user typed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llmcourse.errors import ChatTemplateError
from llmcourse.text.added import AddedToken, Cutter, any_of
from llmcourse.text.pattern import without_surrogates

FIRST_STAND_IN = 0xD800


def render(template: str, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
    """The text that the jinja2 `template` makes of `messages`, as Hugging Face templates expect it.

    messages: dicts with "role" and "content" (or what the template asks for).
    variables: what else the template may use: add_generation_prompt, tools, bos_token, …
    A content of None is for a message that calls tools and says nothing; a template that would write "None" is refused.
    Runs sandboxed: a template can neither reach Python's internals nor change the messages.
    Raises ChatTemplateError when the template is malformed, or refuses the messages.
    """
    if not isinstance(messages, (list, tuple)) or not all(isinstance(message, Mapping) for message in messages):
        raise ChatTemplateError(f'a chat is a list of messages like {{"role": "user", "content": "Hi"}}, '
                                f"not {type(messages).__name__} {str(messages)[:60]!r}")
    for number, message in enumerate(messages):
        if message.get("content", "") is None and not message.get("tool_calls"):
            raise ChatTemplateError(f"message {number} ({message.get('role')!r}) has the content None; give it a text, "
                                    "which may be empty")
    try:
        return _compile(template).render(**{"tools": None, "documents": None, **variables, "messages": messages})
    except jinja2.TemplateSyntaxError as error:
        raise ChatTemplateError(f"the chat template is malformed in line {error.lineno}: {error.message}") from error
    except Exception as error:  # a template is a program: with unfit messages it can fail in any way
        raise ChatTemplateError(f"the chat template cannot render these messages: {error}") from error


class ChatTemplate:
    """A model's template, with its special tokens out of reach of the messages.

    template: jinja2 source. specials: the tokenizer's special tokens.
    variables: strings that the template knows by name: {"bos_token": "<s>", …}.
    """

    def __init__(self, template: str, specials: Sequence[AddedToken], variables: Mapping[str, str]):
        by_content = {token.content: token for token in specials}
        self._special_text = any_of(by_content)
        used = {found for source in (template, *variables.values()) for found in self._special_text.findall(source)}
        stand_ins = {content: chr(FIRST_STAND_IN + i) for i, content in enumerate(sorted(used))}

        def disguised(source: str) -> str:
            return self._special_text.sub(lambda match: stand_ins[match.group()], source)

        self._template = disguised(template)
        self._variables = {name: disguised(value) for name, value in variables.items()}
        self._cutter = Cutter({stand_in: by_content[content] for content, stand_in in stand_ins.items()})

    def parts(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> Iterator[str | int]:
        """The chat as ordinary text and, between, the ids of the special tokens that the template wrote.

        Raises ChatTemplateError as `render` does, and when the template puts special tokens together from pieces.
        """
        messages, variables = _without_surrogates(messages), _without_surrogates(variables)
        text = render(self._template, messages, **{**self._variables, **variables})
        for part in self._cutter.cut(text, special=True):
            if isinstance(part, str):
                self._check_typed(part, [messages, variables])
            yield part

    def _check_typed(self, text: str, given: Any) -> None:
        """Special-token text among the ordinary text must come whole from a message."""
        for found in self._special_text.findall(text):
            if not _holds(given, found):
                raise ChatTemplateError(
                    f"the chat template put {found!r} together from pieces, so a special token "
                    "could not be told from typed text; if you trust every message, encode the text of "
                    "llmcourse.text.chat.render with special=True")


def _holds(value: Any, text: str) -> bool:
    """Whether a string in nested dicts and lists contains `text`."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple)):
        return any(_holds(each, text) for each in value)
    return isinstance(value, str) and text in value


def _without_surrogates(value: Any) -> Any:
    """The same nested dicts and lists, with no surrogate in any string."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, Mapping):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(each) for each in value]
    return value


@lru_cache(maxsize=16)
def _compile(template: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation], finalize=_not_none)
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    environment.filters["tojson"] = _to_json
    return environment.from_string(template)


def _not_none(value: Any) -> Any:
    """What a template writes: jinja2 would write None as a word, which no message holds."""
    if value is None:
        raise jinja2.TemplateError("it writes a value that is None")
    return value


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None,
             sort_keys: bool = False) -> str:
    """Plain JSON; jinja2's own filter would write `<` as an escape, for web pages."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Generation(Extension):
    """{% generation %} … {% endgeneration %} marks the assistant's words for training; here it changes nothing."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> nodes.Node:
        """The marked part, in a scope of its own."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

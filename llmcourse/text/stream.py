"""Streaming: turn token ids into text while they are made, and stop at stop strings.

Two things keep a token's text from being shown at once. A character may take several tokens (an emoji has four
bytes), so incomplete bytes wait for the rest. And text that may be the start of a stop string waits until it is
clear whether it is one: once sent, text cannot be taken back.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Collection, Sequence

from llmcourse.errors import TokenizerError


class StreamDecoder:
    """Decodes one answer, token by token: `push` every id, then `finish`.

    token_bytes: a function from an id to the token's bytes.
    stop: stop strings (or a single one). The one that is complete first ends the text, which then lacks it; of two
        that are complete at the same character, the longer. It does not matter how the text falls into tokens.
    skipped: ids that leave no text. drops_first_space: whether a space at the very start is left out.

    Without a stop string in the text, the pieces joined equal the whole decoded at once. A push takes time in
    proportion to the text that comes and goes, however long the answer or the stop strings are.

    stopped: True once a stop string was found; from there on nothing is emitted. stop_string: which one, or None.
    Raises TokenizerError for an empty stop string.
    """

    def __init__(
        self, token_bytes: Callable[[int], bytes], stop: str | Sequence[str] = (), *, skipped: Collection[int] = (),
        drops_first_space: bool = False,
    ):
        self._token_bytes, self._skipped, self._drops_space = token_bytes, skipped, drops_first_space
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._finder = StopFinder((stop,) if isinstance(stop, str) else stop)

    @property
    def stop_string(self) -> str | None:
        return self._finder.found

    @property
    def stopped(self) -> bool:
        return self._finder.found is not None

    def push(self, token_id: int) -> str:
        """The text that is certain now that this token has come; often empty, or more than this token's."""
        if self.stopped or token_id in self._skipped:
            return ""
        return self._finder.feed(self._readable(self._token_bytes(token_id)))

    def finish(self) -> str:
        """The rest: text that was held back, and U+FFFD for bytes that never became a character."""
        return "" if self.stopped else self._finder.feed(self._readable(b"", final=True)) + self._finder.rest()

    def _readable(self, new: bytes, final: bool = False) -> str:
        """The characters that are complete with these bytes."""
        text = self._utf8.decode(new, final)
        if self._drops_space and text:
            self._drops_space = False
            return text.removeprefix(" ")
        return text


class StopFinder:
    """Looks for several strings in one pass over the text, letter by letter (Aho and Corasick 1975).

    The stop strings form a tree of letters. We stand at the node that spells the longest end of the text that is the
    start of a stop string: just what must be held back. When no child fits the next letter we try the fallback, the
    node that spells the next shorter such end; the letters by which it is shorter are certain.
    """

    def __init__(self, stops: Sequence[str]):
        self._children: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._spells = [""]  # a stop string that starts with the node's letters
        self._stop: list[str | None] = [None]  # the longest stop string that ends at the node
        for stop in stops:
            if not stop:
                raise TokenizerError("a stop string is empty; leave it out")
            self._add(stop)
        self._fallback = [0] * len(self._depth)
        self._link()
        self._node = 0
        self.found: str | None = None

    def feed(self, text: str) -> str:
        """Read text; return what is certain: up to a stop string, or to what may be the start of one."""
        certain = []
        for letter in text:
            before = self._node
            self._node = self._step(before, letter)
            n_certain = self._depth[before] + 1 - self._depth[self._node]
            certain.append(self._spelled(before, n_certain))
            if n_certain > self._depth[before]:
                certain.append(letter)
            self.found = self._stop[self._node]
            if self.found is not None:
                certain.append(self._spelled(self._node, self._depth[self._node] - len(self.found)))
                break
        return "".join(certain)

    def rest(self) -> str:
        """The text that is held back. It ends here, so it is no stop string."""
        held, self._node = self._spelled(self._node, self._depth[self._node]), 0
        return held if self.found is None else ""

    def _spelled(self, node: int, n: int) -> str:
        """The first n letters of those on the way to a node (all of them if there are fewer)."""
        return self._spells[node][: min(n, self._depth[node])]

    def _step(self, node: int, letter: str) -> int:
        while node and letter not in self._children[node]:
            node = self._fallback[node]
        return self._children[node].get(letter, 0)

    def _add(self, stop: str) -> None:
        node = 0
        for letter in stop:
            if letter not in self._children[node]:
                self._children[node][letter] = len(self._depth)
                self._children.append({})
                self._depth.append(self._depth[node] + 1)
                self._spells.append(stop)
                self._stop.append(None)
            node = self._children[node][letter]
        self._stop[node] = stop

    def _link(self) -> None:
        """Set the fallbacks, shorter nodes first: a child's is found from its parent's by one letter."""
        queue = deque(self._children[0].values())
        while queue:
            node = queue.popleft()
            for letter, child in self._children[node].items():
                self._fallback[child] = self._step(self._fallback[node], letter)
                self._stop[child] = self._stop[child] or self._stop[self._fallback[child]]
                queue.append(child)

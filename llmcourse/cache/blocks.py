"""Who owns which block of a paged cache, and which text stands in it. Numbers only: no tensor is touched here.

A paged cache cuts its memory into blocks of `size` tokens. A request holds a list of blocks, its block table; the last one
may be half full. Two requests that begin with the same tokens may hold the same blocks. A block that nobody holds any more
keeps its text until the room is needed: who comes with the same beginning finds it there.

    free ──allocate──▶ held ──commit──▶ held, in the index
      ▲                  │                    │   ▲
      └──────release─────┘                 release take (a prefix hit)
      ▲                                       ▼   │
      └───────────evicted (oldest first)─── kept, held by nobody
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from llmcourse.errors import CacheFault

NULL = 0  # the block that nobody owns: padding is written there, and tables are padded with it


@dataclass(eq=False)
class Entry:
    """A full block's text in the prefix index.

    Args:
        key: where in the index it stands: a hash of the parent's hash and the tokens, so of all tokens up to here.
        tokens: the block's own.
        parent: the entry of the block before it; None for the first block of a text.
    """

    block: int
    key: int
    tokens: tuple[int, ...]
    parent: Entry | None
    children: list[Entry] = field(default_factory=list)


class BlockPool:
    """Blocks 1 … n_blocks − 1 to give out; block 0 stays nobody's.

    Args:
        n_blocks: how many there are, block 0 included; at least 2.
        size: tokens in a block.
        hash_bits: of the index's keys. Few bits make collisions, which the tests want: tokens and parent are compared, so a
            collision costs a comparison, never a wrong text.

    Source: Kwon et al. 2023, "PagedAttention", §4; the chained hashes as in vLLM's automatic prefix caching.
    """

    def __init__(self, n_blocks: int, size: int = 16, hash_bits: int = 64):
        if n_blocks < 2 or size < 1:
            raise ValueError(f"a pool needs at least 2 blocks of at least 1 token, got {n_blocks} of {size}")
        self.n_blocks, self.size = n_blocks, size
        self._mask = (1 << hash_bits) - 1
        self._holders = [0] * n_blocks
        self._empty = list(range(n_blocks - 1, 0, -1))  # a stack: what was used last is given out first
        self._kept: OrderedDict[int, None] = OrderedDict()  # held by nobody, text still there; the oldest first
        self._entry: dict[int, Entry] = {}  # block → its text
        self._index: dict[int, list[Entry]] = {}  # key → entries

    @property
    def n_free(self) -> int:
        """Blocks that `allocate` can give: empty ones, and those that are only kept."""
        return len(self._empty) + len(self._kept)

    @property
    def n_held(self) -> int:
        """Blocks that at least one request holds. Together with `n_free` these are all but block 0."""
        return self.n_blocks - 1 - self.n_free

    @property
    def n_indexed(self) -> int:
        """Blocks whose text can be found."""
        return len(self._entry)

    def blocks_for(self, n_tokens: int) -> int:
        """How many blocks n tokens fill, the last one perhaps in part."""
        return -(-n_tokens // self.size)

    def allocate(self, n: int) -> list[int] | None:
        """n blocks for one holder, or None, and nothing changed, where there are fewer.

        Empty blocks go first; then those that were kept longest lose their text.
        """
        if n > self.n_free:
            return None
        blocks = []
        for _ in range(n):
            if not self._empty:
                self._forget(self._entry[next(iter(self._kept))])
            block = self._empty.pop()
            self._holders[block] = 1
            blocks.append(block)
        return blocks

    def match(self, ids: Sequence[int]) -> list[int]:
        """The blocks that already hold the beginning of a text, in order; call `take` before anything else happens.

        Whole blocks only, and never the whole text: at least the last token is left to compute, since somebody wants the
        logits that follow it.
        """
        found: list[int] = []
        parent: Entry | None = None
        for i in range((len(ids) - 1) // self.size):
            parent = self._find(parent, tuple(ids[i * self.size : (i + 1) * self.size]))
            if parent is None:
                break
            found.append(parent.block)
        return found

    def take(self, blocks: Sequence[int]) -> None:
        """One more holder for each block that `match` found."""
        for block in blocks:
            if block not in self._entry:
                raise CacheFault(f"block {block} holds no text that can be shared")
            self._kept.pop(block, None)
            self._holders[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """A holder lets go. The end of its text goes first, so that a beginning, which others may share, is kept longest.

        Raises CacheFault, and nothing has changed, for a block that is held less often than it is given back.
        """
        for block in set(blocks):
            if block == NULL or self._holders[block] < blocks.count(block):
                raise CacheFault(f"block {block} was given back more often than it was held")
        for block in reversed(blocks):
            self._holders[block] -= 1
            if self._holders[block] == 0:
                if block in self._entry:
                    self._kept[block] = None
                else:
                    self._empty.append(block)

    def commit(self, blocks: Sequence[int], ids: Sequence[int]) -> None:
        """Enter the full blocks of a holder's computed tokens into the index; `ids` are all its tokens from the first on.

        A text that is there already keeps its old block: both hold the same numbers, and one can be found.
        """
        parent: Entry | None = None
        for i in range(len(ids) // self.size):
            block, tokens = blocks[i], tuple(ids[i * self.size : (i + 1) * self.size])
            known = self._entry.get(block)
            if known is not None and known.tokens == tokens and known.parent is parent:
                parent = known
                continue
            parent = self._find(parent, tokens) or self._enter(block, tokens, parent)

    def writable(self, block: int) -> int | None:
        """The block that a holder may write to instead of this one: itself, or one of its own (copy on write).

        A block with other holders is left to them, and the caller copies what it needs into the new one. A text in the
        index that is about to change is forgotten. None, and nothing changed, where a new block is needed and none is free.
        """
        if self._holders[block] > 1:
            fresh = self.allocate(1)
            if fresh is None:
                return None
            self._holders[block] -= 1
            return fresh[0]
        if block in self._entry:
            self._forget(self._entry[block])
        return block

    def clear(self) -> None:
        """Forget all texts; blocks that are held stay held."""
        for entry in list(self._entry.values()):
            if entry.parent is None:
                self._forget(entry)

    def check(self) -> None:
        """Raise CacheFault unless everything fits together. Walks over all blocks: for tests, and when nothing runs."""
        empty, kept = set(self._empty), set(self._kept)
        held = {block for block, n in enumerate(self._holders) if n}
        faults = [
            ("block 0 is in use", NULL in empty | kept | held | set(self._entry)),
            ("a block is empty twice", len(empty) != len(self._empty)),
            ("a block is in two states", bool(empty & kept or empty & held or kept & held)),
            ("a block is lost", empty | kept | held != set(range(1, self.n_blocks))),
            ("an empty block has a text", bool(empty & set(self._entry))),
            ("a kept block has no text", not kept <= set(self._entry)),
            ("a block is held less than never", min(self._holders) < 0),
        ]
        indexed = [entry for entries in self._index.values() for entry in entries]
        faults += [
            ("the index and the blocks differ", {e.block: e for e in indexed} != self._entry or len(indexed) != len(self._entry)),
            ("a text is there twice", len({(id(e.parent), e.tokens) for e in indexed}) != len(indexed)),
            ("a text's beginning is gone", any(e.parent and self._entry.get(e.parent.block) is not e.parent for e in indexed)),
            ("a child is unknown to its parent", any(e.parent and e not in e.parent.children for e in indexed)),
        ]
        wrong = [what for what, is_so in faults if is_so]
        if wrong:
            raise CacheFault(f"the block pool is broken: {'; '.join(wrong)}")

    def _key(self, parent: Entry | None, tokens: tuple[int, ...]) -> int:
        return hash((parent.key if parent else 0, tokens)) & self._mask

    def _find(self, parent: Entry | None, tokens: tuple[int, ...]) -> Entry | None:
        for entry in self._index.get(self._key(parent, tokens), ()):
            if entry.parent is parent and entry.tokens == tokens:
                return entry
        return None

    def _enter(self, block: int, tokens: tuple[int, ...], parent: Entry | None) -> Entry:
        if block in self._entry:
            self._forget(self._entry[block])
        entry = Entry(block, self._key(parent, tokens), tokens, parent)
        self._entry[block] = entry
        self._index.setdefault(entry.key, []).append(entry)
        if parent is not None:
            parent.children.append(entry)
        return entry

    def _forget(self, entry: Entry) -> None:
        """Take a text out of the index, and all that continue it: without their beginning they could not be found."""
        if entry.parent is not None:
            entry.parent.children.remove(entry)
        leaving = [entry]
        for one in leaving:  # grows while it is walked
            leaving += one.children
            self._index[one.key].remove(one)
            if not self._index[one.key]:
                del self._index[one.key]
            del self._entry[one.block]
            if one.block in self._kept:
                del self._kept[one.block]
                self._empty.append(one.block)

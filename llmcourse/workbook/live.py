"""Boxes to type into: `type_here` shows a text anew with every key, `watch_tokens` streams an answer with its times.

Both leave a static output behind, what they show for the first text, for readers without a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from llmcourse.errors import CourseError

from .report import in_notebook
from .token_view import TokenView


def type_here(view: Callable[[str], object], text: str) -> None:
    """Show `view(text)`, and under it a box: what is typed there is viewed in its place, with every key.

    view: gives something that a notebook can display; quick enough for a typist.
    """
    if not in_notebook():
        print(view(text))
        return
    from IPython.display import display

    place = display(view(text), display_id=True)
    box, _ = _box(text, "")
    if box is not None:
        box.observe(lambda change: place.update(view(change["new"])), names="value")


def watch_tokens(engine, prompt: str, max_tokens: int = 24) -> None:
    """Ask the model, show every token with its wait in ms as it comes, and at the end all waits as bars.

    engine: an Engine whose model can chat. A box below asks again, with what is typed there, at the press of a button.
    """
    if not in_notebook():
        views = [view for view, _ in answer(engine, prompt, max_tokens)]
        print(views[-1])
        return
    from IPython.display import display

    from .exploring import Place
    from .plots import waits

    words, bars = display(TokenView(()), display_id=True), Place()

    def ask(text: str) -> None:
        try:
            for view, seconds in answer(engine, text, max_tokens):
                words.update(view)
        except CourseError as error:
            words.update(TokenView((), title=str(error)))
            return
        waits(view.tokens, seconds).put(bars)

    ask(prompt)
    box, button = _box(prompt, "Ask")
    if box is not None:
        button.on_click(lambda _: ask(box.value))


def answer(engine, prompt: str, max_tokens: int) -> Iterator[tuple[TokenView, list[float]]]:
    """The greedy answer to a chat message, after each token: the tokens so far, and the seconds that each one took.

    The last view's title sums up: TTFT, mean ITL and tokens per second.
    """
    ids, seconds = [], []
    with engine.stream([{"role": "user", "content": prompt}], temperature=0, max_tokens=max_tokens) as stream:
        for token in stream:
            ids.append(token.id)
            seconds.append(token.seconds)
            yield _timed(engine.tokenizer, ids, seconds, f"{len(ids)} tokens …"), seconds
    itl = sum(seconds[1:]) / max(1, len(seconds) - 1)
    summary = (f"prompt {len(stream.result.prompt_ids)} tokens, TTFT {1000 * seconds[0]:,.0f} ms, "
               f"mean ITL {1000 * itl:,.0f} ms, {len(ids) / sum(seconds):.1f} tokens per second")
    yield _timed(engine.tokenizer, ids, seconds, summary), seconds


def _timed(tokenizer, ids: list[int], seconds: list[float], title: str) -> TokenView:
    return TokenView(tuple(tokenizer.tokens(ids)), tuple(f"{1000 * s:,.0f}\u00a0ms" for s in seconds), title)


def _box(text: str, action: str):
    """A shown line to type into and a button (None without an action); both None where ipywidgets is not installed."""
    try:
        import ipywidgets
    except ImportError:
        return None, None
    from IPython.display import display

    box = ipywidgets.Text(text, layout={"width": "80%" if action else "95%"})
    button = ipywidgets.Button(description=action, button_style="primary") if action else None
    row = ipywidgets.HBox([box, button] if button else [box])
    display({**row._repr_mimebundle_(), "text/plain": "Run this cell to type a text of your own."}, raw=True)
    return box, button

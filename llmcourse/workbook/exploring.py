"""`explore`: a picture with controls. Where there is a kernel the controls are live; the picture is always there."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import escape
from itertools import count

from llmcourse.errors import CourseError

from .report import in_notebook

PNG, HTML, PLAIN = "image/png", "text/html", "text/plain"
WIDE = 64
_NUMBERS = count(1)


def explore(draw: Callable, **controls) -> None:
    """Show `draw(**values)` for the controls' defaults, and draw it again whenever a control is moved.

    draw: returns a matplotlib Figure (or Axes), or (figure, text) where text says in words what the figure shows.
    controls: for each argument of draw one of
        (low, high), (low, high, default)   a slider; whole numbers stay whole; a range over a factor of 64 doubles
        [a, b, …]                           a choice, the first is the default
        True, False                         a tick box
        "text"                              a line to type into

    The picture is an ordinary output, so it stays where no widget lives: in a browser on a hosting site, in exported
    HTML, in a file that is only read. Below it stands what it shows in words, folded, and below that the controls.
    """
    kinds = {name: _control(name, given) for name, given in controls.items()}
    values = {name: control["value"] for name, control in kinds.items()}
    data, metadata = picture(draw, values)
    if not in_notebook():
        print(data[PLAIN])
        return
    from IPython.display import display

    place = Place()
    place.put(data, metadata)
    panel = _panel(kinds, lambda moved: place.put(*_again(draw, moved)))
    if panel is not None:
        text = f"Run this cell to move: {', '.join(kinds)}."
        display({**panel._repr_mimebundle_(), PLAIN: text}, raw=True)


class Place:
    """A place in a notebook's output for a picture and, folded, its words; what is put there replaces what was."""

    def __init__(self):
        self._handle = f"picture-{next(_NUMBERS)}"
        self._used = False

    def put(self, data: dict, metadata: dict) -> None:
        """Show what `picture` returns."""
        from IPython.display import display

        display(data, metadata=metadata, raw=True, display_id=self._handle, update=self._used)
        display(_folded(data[PLAIN]), raw=True, display_id=f"{self._handle}-words", update=self._used)
        self._used = True


def picture(draw: Callable, values: dict) -> tuple[dict, dict]:
    """The output for these values: a mimebundle with the PNG and its text alternative, and its metadata."""
    import matplotlib.pyplot as plt

    result = draw(**values)
    result, text = result if isinstance(result, tuple) else (result, "")
    figure = getattr(result, "figure", result)
    if not hasattr(figure, "savefig"):
        raise CourseError(f"explore needs a figure from {getattr(draw, '__name__', draw)}, got {type(result).__name__}")
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", dpi=figure.dpi, metadata={"Software": None})
    plt.close(figure)
    settings = ", ".join(f"{name} = {value}" for name, value in values.items())
    words = f"{text or _words(figure)} ({settings})" if settings else text or _words(figure)
    return {PNG: file.getvalue(), PLAIN: words}, {PNG: {"alt": words}}


def _words(figure) -> str:
    """What a figure says about itself: titles and axis labels."""
    parts = [figure.get_suptitle()] if hasattr(figure, "get_suptitle") else []
    for axes in figure.axes:
        axis = " against ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))
        parts += [axes.get_title(), axis]
    return "Picture: " + "; ".join(part for part in parts if part)


def _control(name: str, given: object) -> dict:
    """Kind, default and range of one control."""
    if isinstance(given, bool):
        return {"kind": "tick", "value": given}
    if isinstance(given, str):
        return {"kind": "text", "value": given}
    if isinstance(given, list) and given:
        return {"kind": "choice", "value": given[0], "options": given}
    if isinstance(given, tuple) and len(given) in (2, 3) and given[0] < given[1]:
        low, high = given[:2]
        value = given[2] if len(given) == 3 else low
        whole = all(isinstance(number, int) for number in given)
        if low > 0 and high / low > WIDE:
            return {"kind": "choice", "value": value, "options": sorted({value, *_doubling(low, high)})}
        return {"kind": "whole" if whole else "real", "value": value, "low": low, "high": high}
    raise CourseError(f"explore cannot make a control of {name}={given!r}; "
                      "use (low, high), a list, True or False, or a text")


def _doubling(low: float, high: float) -> list[float]:
    steps = [low]
    while steps[-1] * 2 < high:
        steps.append(steps[-1] * 2)
    return [*steps, high]


def _panel(kinds: dict[str, dict], redraw: Callable[[dict], None]):
    """The controls as one box, None where ipywidgets is not installed."""
    try:
        import ipywidgets
    except ImportError:
        return None
    made = {name: _widget(ipywidgets, name, control) for name, control in kinds.items()}

    def moved(change) -> None:
        redraw({name: widget.value for name, widget in made.items()})

    for widget in made.values():
        widget.observe(moved, names="value")
    return ipywidgets.VBox(list(made.values()))


def _widget(ipywidgets, name: str, control: dict):
    label, value = name.replace("_", " "), control["value"]
    shared = {"value": value, "description": label, "style": {"description_width": "initial"}}
    if control["kind"] == "tick":
        return ipywidgets.Checkbox(**shared)
    if control["kind"] == "text":
        return ipywidgets.Text(**shared, layout={"width": "95%"})
    if control["kind"] == "choice":
        numbers = all(isinstance(option, (int, float)) for option in control["options"])
        kind = ipywidgets.SelectionSlider if numbers else ipywidgets.Dropdown
        return kind(options=[(_label(option), option) for option in control["options"]], **shared)
    kind = ipywidgets.IntSlider if control["kind"] == "whole" else ipywidgets.FloatSlider
    step = {} if control["kind"] == "whole" else {"step": (control["high"] - control["low"]) / 100}
    return kind(min=control["low"], max=control["high"], **step, **shared)


def _label(option: object) -> str:
    return f"{option:,}" if isinstance(option, int) else f"{option:g}" if isinstance(option, float) else str(option)


def _folded(words: str) -> dict:
    """The words for those who cannot see the picture; notebooks do not show an image's own text alternative."""
    return {HTML: f"<details><summary>This picture in words</summary>{escape(words)}</details>", PLAIN: words}


def _again(draw: Callable, values: dict) -> tuple[dict, dict]:
    """The picture for moved controls; where drawing fails, a line that says so instead of a silent picture."""
    try:
        return picture(draw, values)
    except Exception as error:
        return {PLAIN: f"No picture for {values}: {type(error).__name__}: {error}"}, {}

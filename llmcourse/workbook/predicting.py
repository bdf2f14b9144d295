"""`predict` and `measured`: write a number down, then see how near it was. Kept as JSON in the work folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from types import EllipsisType

from .course import work_folder
from .report import Report, show

FILE = "predictions.json"
UNWRITTEN = "You wrote none. A guess costs a minute, and what surprises you is what you will remember."


@dataclass(frozen=True)
class Prediction:
    """One prediction. predicted, measured: in `unit`, None where there is none yet."""

    name: str
    unit: str = ""
    predicted: float | None = None
    measured: float | None = None

    def __str__(self) -> str:
        predicted = "no prediction" if self.predicted is None else f"predicted {self._number(self.predicted)}"
        measured = "not measured yet" if self.measured is None else f"measured {self._number(self.measured)}"
        return f"{self.name}: {predicted}, {measured}{self._distance()}"

    def _number(self, value: float) -> str:
        return f"{value:.4g} {self.unit}".strip()

    def _distance(self) -> str:
        if self.predicted is None or self.measured is None:
            return ""
        if self.predicted == self.measured:
            return ": exactly"
        if self.predicted * self.measured <= 0:
            return f": {self._number(abs(self.predicted - self.measured))} apart"
        factor = max(self.predicted / self.measured, self.measured / self.predicted)
        return f": {factor:.2f} times too {'high' if abs(self.predicted) > abs(self.measured) else 'low'}"


def predict(name: str, value: float | EllipsisType | None = ..., unit: str = "") -> None:
    """Write down what you expect before you measure it: `predict("speed-up of token 512", 20, "×")`.

    value: your number. The three dots that a lesson ships (or None) are no number: the page says so, and one that was
    written down earlier stays.
    """
    before = predictions().get(name, Prediction(name))
    number = before.predicted if value is None or value is ... else float(value)
    mine = Prediction(name, unit or before.unit, number, before.measured)
    lost = _keep(mine)
    if number is None:
        asked = f"write your number{f' (in {unit})' if unit else ''} in place of the three dots, and run the cell again"
        show(Report(f"Prediction, {name}: none yet; {asked}", (), lost))
    else:
        show(Report(f"Prediction, {name}: you say {mine._number(number)}", (), lost))


def measured(name: str, value: float) -> None:
    """Set a measured value beside the prediction of the same name, and show how far apart they are."""
    before = predictions().get(name, Prediction(name))
    now = Prediction(name, before.unit, before.predicted, float(value))
    lost = _keep(now)
    show(Report(str(now), (), lost or ("" if before.predicted is not None else UNWRITTEN)))


def predictions(work: Path | None = None) -> dict[str, Prediction]:
    """All predictions by name, in the order in which they were made; those of a damaged file are lost."""
    file = (work or work_folder()) / FILE
    try:
        stored = json.loads(file.read_text("utf-8"))
        return {name: Prediction(name, **fields) for name, fields in stored.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _keep(one: Prediction) -> str:
    """Write it beside the others; returns why that failed, "" when it did not."""
    kept = {**predictions(), one.name: one}
    fields = {name: {k: v for k, v in asdict(p).items() if k != "name"} for name, p in kept.items()}
    folder = work_folder()
    part = folder / f"{FILE}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n", "utf-8")
        os.replace(part, folder / FILE)
    except OSError as error:
        return f"It is not kept for later: {folder} cannot be written ({error.strerror})."
    return ""

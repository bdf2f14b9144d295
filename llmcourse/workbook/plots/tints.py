"""Colours behind tokens that stand side by side. Apart from `style`, since boxes in a page need no matplotlib."""

from __future__ import annotations

TINTS = ("#FBD9C2", "#CFE8F8", "#CDEBDD", "#F9F0B8", "#E6D5EC")
INK = "#222222"

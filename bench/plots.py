"""The two plots of docs/performance.md, as plain SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.systems import SYSTEMS

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 124, 60
COLOURS = {
    "koda": "#0b6e4f",
    "floor": "#888888",
    "hand_rolled": "#c1121f",
    "resumable_stream": "#1d4ed8",
}
Lines = Mapping[str, Sequence[tuple[float, float]]]
TITLES = {kind.name: kind.title for kind in SYSTEMS}


def draw(found: dict[str, Any], folder: Path) -> None:
    """performance-latency.svg and performance-memory.svg."""
    growth = found["growth"]
    latency = Plot("Latency, p50 (runs × 50 fragments/s)", "concurrent runs", "ms")
    memory = Plot("Memory for all waiting clients", "clients", "MB")
    curves = {
        "performance-latency.svg": latency.svg(_points(growth["latency"], "runs", "p50_ms")),
        "performance-memory.svg": memory.svg(_memory(growth["memory"])),
    }
    for name, svg in curves.items():
        (folder / name).write_text(svg)


def _points(by_system: dict[str, list[dict[str, Any]]], x: str, y: str) -> Lines:
    """What has a place on a logarithmic axis: memory may also have become less meanwhile."""
    return {
        system: [(point[x], point[y]) for point in points if (point[y] or 0) > 0]
        for system, points in by_system.items()
    }


def _memory(by_system: dict[str, list[dict[str, Any]]]) -> Lines:
    each = _points(by_system, "watchers", "kb_per_client")
    return {system: [(x, x * kb / 1024) for x, kb in points] for system, points in each.items()}


@dataclass(frozen=True)
class Axis:
    """Numbers to pixels, logarithmically, from one power of ten to another."""

    low: int
    high: int
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> Axis:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(low, max(high, low + 1), begin, end)

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.begin + part * (self.end - self.begin), 1)

    @property
    def marks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


@dataclass(frozen=True)
class Plot:
    """A line for each system, both axes logarithmic."""

    title: str
    x: str
    y: str

    def svg(self, lines: Lines) -> str:
        points = [point for line in lines.values() for point in line]
        across = Axis.over([x for x, _ in points], LEFT, WIDTH - RIGHT)
        up = Axis.over([y for _, y in points], HEIGHT - BOTTOM, TOP)
        parts = [*self._frame(across, up)]
        for place, (system, line) in enumerate(lines.items()):
            parts += _line(system, line, across, up)
            parts += _legend(system, place)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="12" role="img" aria-label="{self.title}">'
        )
        return "\n".join([head, *parts, "</svg>"]) + "\n"

    def _frame(self, across: Axis, up: Axis) -> list[str]:
        parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
        parts.append(_text(LEFT, 22, self.title, size=15))
        for mark in across.marks:
            x = across.at(mark)
            parts.append(_rule(x, TOP, x, HEIGHT - BOTTOM))
            parts.append(_text(x, HEIGHT - BOTTOM + 18, f"{mark:,g}", anchor="middle"))
        for mark in up.marks:
            y = up.at(mark)
            parts.append(_rule(LEFT, y, WIDTH - RIGHT, y))
            parts.append(_text(LEFT - 8, y + 4, f"{mark:,g}", anchor="end"))
        parts.append(_text(WIDTH / 2, HEIGHT - 20, self.x, anchor="middle"))
        parts.append(_text(14, TOP - 8, self.y))
        return parts


def _line(system: str, line: Sequence[tuple[float, float]], across: Axis, up: Axis) -> list[str]:
    places = [(across.at(x), up.at(y)) for x, y in line]
    path = " ".join(f"{x},{y}" for x, y in places)
    colour = COLOURS[system]
    dots = [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in places]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _legend(system: str, place: int) -> list[str]:
    y = 46 + 17 * place
    swatch = f'<rect x="{LEFT}" y="{y - 9}" width="12" height="4" fill="{COLOURS[system]}"/>'
    return [swatch, _text(LEFT + 20, y - 3, TITLES[system])]


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{text}</text>'

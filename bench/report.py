"""The results for people: the tables of docs/performance.md, and `bench/results.json`."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from bench import install, plots, targets
from bench.loads import FULL
from bench.processes import ROOT
from bench.systems import SYSTEMS
from bench.targets import Table

COLUMNS = {
    "delivered_per_s": "delivered/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "cpu_s_per_100k": "CPU s per 100,000",
    "kb_per_client": "KB per client",
    "idle_cpu_percent": "idle CPU % added",
    "first_byte_p99_ms": "first byte p99 ms",
    "database_connections": "database connections",
}
TITLES = {kind.name: kind.title for kind in SYSTEMS}
VERDICTS = {True: "met", False: "**missed**", None: "not measured"}


def summary(table: Table) -> str:
    """Everything, as Markdown."""
    return f"{measured(table)}\n\n{against_targets(table)}"


def measured(table: Table) -> str:
    """A table for each load."""
    loads = {load.name: load for load in FULL}
    parts = []
    for name, row in table.items():
        columns = [c for c in COLUMNS if any(cell.get(c) is not None for cell in row.values())]
        head = ["system", *(COLUMNS[column] for column in columns), "stored", "wrong"]
        lines = [_line(head), _line(["---"] * len(head))]
        lines += [_system(system, cell, columns) for system, cell in row.items()]
        parts.append(f"**`{name}`**: {loads[name].what}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _system(system: str, cell: dict[str, Any], columns: list[str]) -> str:
    title = TITLES[system]
    if why := cell.get("absent") or cell.get("unsupported"):
        return _line([title, f"– ({why})", *[""] * (len(columns) + 1)])
    if "error" in cell and "repetitions" not in cell:
        return _line([title, f"failed: {cell['error']}", *[""] * (len(columns) + 1)])
    wrong = sum(cell[count] for count in ("missing", "doubled", "disordered"))
    cut = f" ({cell['unfinished']} streams cut off)" if cell["unfinished"] else ""
    values = [_number(cell.get(column)) for column in columns]
    return _line([title, *values, "yes" if cell["persists"] else "no", f"{wrong}{cut}"])


def against_targets(table: Table) -> str:
    """The targets, and what became of them."""
    head = ["load", "measure", "target", "measured", ""]
    lines = [_line(head), _line(["---"] * len(head))]
    for outcome in targets.outcomes(table):
        target = outcome.target
        name = COLUMNS.get(target.measure, target.measure)
        times = " ×" if target.reference and outcome.value is not None else ""
        value = _number(outcome.value) + times
        lines.append(_line([target.load, name, target.words, value, VERDICTS[outcome.met]]))
    found = targets.wrong(table)
    lines.append(_line(["all", "wrong fragments", "0", str(found), VERDICTS[found == 0]]))
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """What it was measured on."""
    info = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    packages = ("Django", "uvicorn", "redis", "psycopg", "channels-redis")
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[2], 1),
        "versions": {name: version(name) for name in packages},
        "peers": sorted({*install.EVENTSTREAM, *install.NODE}),
    }


def write(table: Table, *, growth: dict[str, Any] | None) -> None:
    """bench/results.json, the plots, and the generated parts of docs/performance.md.

    Without `growth` the curves stay as they are.
    """
    found = {"machine": machine(), "loads": table, "growth": growth}
    results = ROOT / "bench" / "results.json"
    results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    render(found)


def render(found: dict[str, Any]) -> None:
    """The document, from the results."""
    docs = ROOT / "docs"
    parts = {
        "machine": f"{_machine_line(found['machine'])} {_repetitions(found['loads'])}",
        "targets": against_targets(found["loads"]),
        "loads": measured(found["loads"]),
    }
    if found["growth"] is not None:
        plots.draw(found, docs)
        parts["growth"] = _growth(found["growth"])
    page = docs / "performance.md"
    text = page.read_text()
    for name, content in parts.items():
        begin, end = f"<!-- {name}: written by make bench -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n\n{content}\n\n{end}{after}"
    page.write_text(text)


def _machine_line(machine: dict[str, Any]) -> str:
    return (
        f"Measured on {machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB, "
        f"Linux {machine['kernel']}, Python {machine['python']}, "
        f"Django {machine['versions']['Django']}. The load average of the last 15 minutes was "
        f"{machine['load_average']:g}; the benchmark alone makes it about as much as the cores."
    )


def _repetitions(table: Table) -> str:
    """How often, as one line; what failed at times has fewer."""
    most = max(cell.get("repetitions", 0) for row in table.values() for cell in row.values())
    return f"The loads were measured {most} times each, the curves once."


def _growth(growth: dict[str, Any]) -> str:
    lines = []
    for name, points in growth["curves"].items():
        columns = list(points[0])
        lines += [f"**{name}**", "", _line(columns), _line(["---"] * len(columns))]
        lines += [_line([_number(point[column]) for column in columns]) for point in points]
        lines.append("")
    return "\n".join(lines).strip()


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""How smooth the chat page is while a long answer is written: `python -m bench.page`.

Frames are what `requestAnimationFrame` gets; CPU is what Chromium's main thread of the page was
busy with. In a headless browser frames come 60 times a second, painted by the CPU.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import CDPSession, Page

from bench.browsing import Visitor, chromium, served

RECORD = """
    window.frames_ = [];
    window.tasks_ = [];
    let before = performance.now();
    const look = (now) => {
        window.frames_.push(now - before);
        before = now;
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    new PerformanceObserver((list) => {
        window.tasks_.push(...list.getEntries().map((entry) => entry.duration));
    }).observe({ type: 'longtask' });
"""
COUNTED = "TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"


def metrics(devtools: CDPSession) -> dict[str, float]:
    found = devtools.send("Performance.getMetrics")["metrics"]
    return {one["name"]: one["value"] for one in found}


def heap(devtools: CDPSession) -> float:
    """MB in use after a collection."""
    devtools.send("HeapProfiler.collectGarbage")
    return metrics(devtools)["JSHeapUsedSize"] / 1e6


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def ask(who: Visitor, *, tokens: int, per_second: float) -> None:
    """The long answer has begun, on a fresh page."""
    conversation = who.conversation("long")
    who.open(conversation)
    body = {"text": "Go on.", "metadata": {"tokens": tokens, "per_second": per_second}}
    who.call("POST", f"conversations/{conversation}/messages", **body)
    who.page.reload()
    who.page.locator("article[data-status='running'] .text").wait_for()


def watch(who: Visitor, *, timeout: float) -> dict[str, Any]:
    """What it costs until the answer is complete. `timeout` in seconds."""
    devtools = who.context.new_cdp_session(who.page)
    devtools.send("Performance.enable")
    heap_before, before = heap(devtools), metrics(devtools)
    who.page.evaluate(RECORD)
    who.wait_for("completed", timeout=timeout)
    frames: list[float] = who.page.evaluate("window.frames_.slice(1)")
    tasks: list[float] = who.page.evaluate("window.tasks_")
    after = metrics(devtools)
    seconds = sum(frames) / 1000
    return {
        "seconds": round(seconds, 1),
        "frames_per_second": round(len(frames) / seconds, 1),
        "frame_ms": {
            name: round(quantile(frames, share), 1)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
        },
        "frames_over_33_ms": sum(frame > 33.4 for frame in frames),
        "long_tasks": len(tasks),
        "longest_task_ms": round(max(tasks, default=0.0)),
        "main_thread_share": {
            name: round((after[name] - before[name]) / seconds, 3) for name in COUNTED
        },
        "heap_mb": [round(heap_before, 1), round(heap(devtools), 1)],
        "elements": who.page.evaluate("document.querySelectorAll('*').length"),
        "characters": who.page.evaluate("document.querySelector('.parts').textContent.length"),
    }


def load(page: Page) -> float:
    """Milliseconds until the answer stands there again after a reload."""
    blocks = page.locator(".parts > .text > *").count()
    began = time.monotonic()
    page.reload()
    page.locator(f".parts > .text > :nth-child({blocks})").wait_for()
    return round((time.monotonic() - began) * 1000)


def faults(page: Page) -> list[str]:
    """What axe finds."""
    return [str(one["id"]) for one in Axe().run(page).response["violations"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--per-second", type=float, default=100)
    options = parser.parse_args()
    with served() as address, chromium() as browser:
        context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 860})
        who = Visitor(context)
        ask(who, tokens=options.tokens, per_second=options.per_second)
        result = {"tokens": options.tokens, "tokens_per_second": options.per_second}
        result |= watch(who, timeout=options.tokens / options.per_second * 2 + 60)
        result |= {"axe": faults(who.page), "reload_ms": load(who.page)}
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

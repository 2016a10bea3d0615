"""How smooth the chat page is while a long answer is written: `python -m bench.page`.

Frames are what `requestAnimationFrame` gets; CPU is what Chromium's main thread of the page was
busy with. In a headless browser frames come 60 times a second, painted by the CPU.
"""

from __future__ import annotations

import argparse
import json
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


def measure(who: Visitor, *, tokens: int, per_second: float) -> dict[str, Any]:
    page: Page = who.page
    devtools = who.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    conversation = who.conversation("long")
    who.open(conversation)
    body = {"text": "Go on.", "metadata": {"tokens": tokens, "per_second": per_second}}
    who.call("POST", f"conversations/{conversation}/messages", **body)
    page.reload()
    page.locator("article[data-status='running'] .text").wait_for()
    memory_before, before = heap(devtools), metrics(devtools)
    page.evaluate(RECORD)
    who.wait_for("completed", timeout=tokens / per_second * 2 + 60)
    frames: list[float] = page.evaluate("window.frames_.slice(1)")
    tasks: list[float] = page.evaluate("window.tasks_")
    after = metrics(devtools)
    seconds = sum(frames) / 1000
    return {
        "tokens": tokens,
        "tokens_per_second": per_second,
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
        "heap_mb": [round(memory_before, 1), round(heap(devtools), 1)],
        "elements": page.evaluate("document.querySelectorAll('*').length"),
        "characters": page.evaluate("document.querySelector('.parts').textContent.length"),
    }


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
        result = measure(who, tokens=options.tokens, per_second=options.per_second)
        result["axe"] = faults(who.page)
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

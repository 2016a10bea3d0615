"""Takes the pictures of the docs: `make screenshots`.

They are written to docs/images, with a palette of 256 colours: a tenth of the size, and no
difference to be seen.
"""

from __future__ import annotations

import io

from PIL import Image
from playwright.sync_api import Browser

from bench.browsing import ROOT, Visitor, chromium, served

IMAGES = ROOT / "docs" / "images"
WIDE = {"width": 1280, "height": 920}
PHONE = {"width": 390, "height": 780}
TITLES = ("Refund for order 1042", "A name for the new kitten", "Trains from Graz to Porto")


def visitor(browser: Browser, address: str, *, size: dict[str, int], **options: object) -> Visitor:
    context = browser.new_context(
        base_url=address,
        viewport=size,  # type: ignore[arg-type]
        device_scale_factor=2 if size is PHONE else 1,
        has_touch=size is PHONE,
        is_mobile=size is PHONE,
        reduced_motion="reduce",
        **options,  # type: ignore[arg-type]
    )
    made = Visitor(context)
    for title in TITLES:
        made.conversation("demo", title)
    return made


def take(who: Visitor, name: str) -> None:
    """One picture, once everything has settled."""
    who.page.wait_for_timeout(400)
    picture = Image.open(io.BytesIO(who.page.screenshot())).convert("RGB")
    path = IMAGES / f"{name}.png"
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} KB")


def plan(who: Visitor) -> None:
    """A conversation about a week in Lyon, answered."""
    who.open(who.conversation("planner"))
    who.send("Plan a quiet week in Lyon for me, on foot.")
    who.wait_for("completed")


def correction(who: Visitor) -> None:
    """The same, corrected while it is being written."""
    who.open(who.conversation("planner"))
    who.send("Plan a quiet week in Lyon for me, on foot.")
    who.page.locator(".answer > .parts table").wait_for()
    who.send("Sorry, I forgot: it has to be cheap.")
    who.page.locator(".superseded").wait_for()
    who.page.locator(".answer > .parts table").wait_for()


def failure(who: Visitor) -> None:
    who.open(who.conversation("overloaded"))
    who.send("Which of the three offers is the best?")
    who.wait_for("failed")


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with served() as address, chromium() as browser:
        welcome = visitor(browser, address, size=WIDE)
        take(welcome, "welcome")
        for scheme in ("light", "dark"):
            who = visitor(browser, address, size=WIDE, color_scheme=scheme)
            plan(who)
            take(who, scheme)
        who = visitor(browser, address, size=WIDE)
        correction(who)
        take(who, "correction")
        who.wait_for("completed")
        failure(who)
        take(who, "failed")
        for name, locale in (("phone", "en"), ("chinese", "zh-CN")):
            who = visitor(browser, address, size=PHONE, locale=locale)
            who.page.locator("#examples button").first.click()
            who.wait_for("completed")
            take(who, name)


if __name__ == "__main__":
    main()

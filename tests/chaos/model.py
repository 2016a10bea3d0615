"""What the scripted model answers: every message it was asked to answer, by its name.

    [ann-3] words=20 pace=0.03

is answered by `Re ann-3: w0 w1 …`; with several messages, by all their names. So the answer shows
which messages its run has read.
"""

from __future__ import annotations

import re

from tests.stub_model import Reply, Request, Step, delta, done, finish, pause, silence

NAME = re.compile(r"\[([\w-]+)\]")
SCRIPT = re.compile(r"words=(\d+) pace=([\d.]+)( silent)?")


def message(name: str, *, words: int, pace: float, silent: bool = False) -> str:
    return f"[{name}] words={words} pace={pace:g}{' silent' if silent else ''}"


def names_in(text: str) -> list[str]:
    """The messages that are named in an answer."""
    head, colon, _ = text.partition(":")
    return head.removeprefix("Re ").split(", ") if colon else []


def asked(request: Request) -> list[str]:
    """The texts that stand after the last answer."""
    texts: list[str] = []
    for said in request.json["messages"]:
        if said["role"] == "user":
            texts.append(said["content"])
        elif said["role"] == "assistant":
            texts.clear()
    return texts


def reply(request: Request) -> Reply:
    """As the last message says; it is the newest wish."""
    texts = asked(request)
    found = SCRIPT.search(texts[-1])
    assert found, f"a message without a script: {texts[-1]!r}"
    names = [name for text in texts for name in NAME.findall(text)]
    steps: list[Step] = [delta(f"Re {', '.join(names)}: ")]
    for number in range(int(found[1])):
        steps += [pause(float(found[2])), delta(f"w{number} ")]
    if found[3]:
        return Reply((*steps, silence()))
    return Reply((*steps, finish(), done()))

"""Agents whose answers are good to look at, and one whose answer is long."""

import asyncio
from collections.abc import AsyncIterator

from runs.agents import Event as AgentEvent
from runs.agents import PermanentError, Reasoning, ToolCompleted, ToolStarted, Turn

TOKENS = 10_000
PER_SECOND = 100

PLAN = """\
Here is a quiet week in **Lyon**, with everything within walking distance{cheap}.

### Where to go

| day | morning | evening | cost |
|---|---|---|---:|
| Monday | Vieux Lyon, the *traboules* | a bouchon by the river | {dinner} € |
| Tuesday | Museum of Fine Arts | the quays at sunset | 12 € |
| Wednesday | Croix-Rousse, the silk weavers | the covered market | 18 € |

1. Take the funicular up to **Fourvière** and walk down.
2. Book the workshop of the silk weavers two days ahead.
3. Keep Thursday for rain. The forecast says `24 °C`, but it also said so last week.

If you want to add it up yourself:

```python
def budget(days: int, *, meals: float = 20.0) -> float:
    return days * meals + 12.0  # the museum's ticket
```
"""

PARAGRAPHS = """\
The **log** is the truth: each event is a numbered row, and *nobody* sees one that is not written \
yet. See [the protocol](https://example.org/protocol) for its `seq`.

- first of all, the claim
- then the first token, `first_token_at`
- then **everything else**

| step | who | when |
|---|---|---:|
| claim | worker | 0 |
| append | worker | 5 |

```python
async def answer(turn):
    yield "Looking…"
    yield find(turn.inputs)
```

### What follows

> A fast nudge may be lost, repeated or late. The pointer does not mind.

"""


def _tokens(text: str) -> list[str]:
    """Some four characters each, as models have them."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


async def planner(turn: Turn) -> AsyncIterator[str | AgentEvent]:
    """Plans a week: reasoning, a tool, Markdown. Corrected, it is cheaper."""
    corrected = len(turn.inputs) > 1
    yield Reasoning("A week, on foot, not too full. The weather decides about Thursday.")
    yield ToolStarted("w1", "weather_forecast", {"city": "Lyon", "days": 7})
    await asyncio.sleep(0.3)
    yield ToolCompleted("w1", {"high": 24, "sky": ["clear", "clear", "clear", "rain"]})
    plan = PLAN.format(
        cheap=" and for less than 100 €" if corrected else "", dinner=16 if corrected else 42
    )
    for token in _tokens(plan):
        await asyncio.sleep(0.008)
        yield token


async def overloaded(turn: Turn) -> AsyncIterator[str]:
    """Breaks off."""
    for token in _tokens("Let me compare the three offers. The first one"):
        await asyncio.sleep(0.01)
        yield token
    raise PermanentError("The model is overloaded. Please try again in a minute.", code="busy")


async def long(turn: Turn) -> AsyncIterator[str]:
    """`tokens` (10,000) of Markdown of all kinds, `per_second` (100)."""
    count = int(str(turn.metadata.get("tokens", TOKENS)))
    pace = 1 / float(str(turn.metadata.get("per_second", PER_SECOND)))
    tokens = _tokens(PARAGRAPHS * (count * 4 // len(PARAGRAPHS) + 1))[:count]
    loop = asyncio.get_running_loop()
    due = loop.time()
    for token in tokens:
        due += pace
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield token

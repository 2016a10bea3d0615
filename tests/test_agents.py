"""The agents' contract: loading by dotted path, and the shipped demo."""

import re
import subprocess
import sys
import textwrap
import time

import pytest

from runs.agents import (
    ChatMessage,
    Event,
    Finish,
    PermanentError,
    ToolCompleted,
    ToolStarted,
    TransientError,
    Turn,
    Usage,
)
from runs.agents.demo import DemoAgent, demo
from runs.agents.registry import AgentConfigError, load_agents

STATUS = "Where is my order 1042?"
EXCHANGE = "Actually I want to exchange it"


def turn(*inputs: str, history: list[ChatMessage] | None = None) -> Turn:
    return Turn(run_id="r1", attempt=1, inputs=list(inputs), history=history or [])


async def collect(*inputs: str, history: list[ChatMessage] | None = None) -> list[str | Event]:
    return [item async for item in DemoAgent(0).respond(turn(*inputs, history=history))]


def text_of(items: list[str | Event]) -> str:
    return "".join(item for item in items if isinstance(item, str))


def test_agents_can_be_imported_without_django():
    code = """
        import sys
        from runs.agents import Turn, Reasoning, ToolStarted, ToolCompleted, ToolFailed
        from runs.agents import Usage, Finish, TransientError, PermanentError
        from runs.agents.registry import load_agents
        import runs.sanitize
        assert set(load_agents({})) == {"demo", "openai"}
        assert not any(name.split(".")[0] == "django" for name in sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_errors_carry_a_message_and_a_code():
    error = TransientError("busy", code="overloaded")
    assert (str(error), error.message, error.code) == ("busy", "busy", "overloaded")
    assert PermanentError("no").code is None


# A module of a user of Koda, written to disk by `shop`.
SHOP = '''
class Support:
    """Helps.

    At length.
    """
    async def respond(self, turn):
        """Answers."""
        yield "from a class"

class Undocumented:
    async def respond(self, turn):
        """Answers somehow."""
        yield "x"

class Needy:
    def __init__(self, key):
        pass

class Mute:
    pass

class NotAGenerator:
    async def respond(self, turn):
        return "x"

support = Support()

async def function(turn):
    """  A function.  """
    yield "from a function"

async def coroutine(turn):
    return "x"

def plain(turn):
    yield "x"

NUMBER = 5
'''


@pytest.fixture
def shop(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "broken.py").write_text("import no_such_library")
    (tmp_path / "raising.py").write_text("raise RuntimeError('no database')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("shop", "broken", "raising"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in ("shop", "broken", "raising"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("path", "description", "text"),
    [
        ("shop.function", "A function.", "from a function"),
        ("shop.Support", "Helps.", "from a class"),
        ("shop.support", "Helps.", "from a class"),
        ("shop.Undocumented", "Answers somehow.", "x"),
    ],
)
async def test_a_path_leads_to_a_function_a_class_or_an_instance(shop, path, description, text):
    agent = load_agents({"help": path})["help"]
    assert (agent.name, agent.description) == ("help", description)
    assert [item async for item in agent.respond(turn("hi"))] == [text]


def test_shipped_agents_are_always_there_and_can_be_replaced(shop, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agents = load_agents({"demo": "shop.function"})
    assert list(agents) == ["demo", "openai"]
    assert agents["demo"].description == "A function."
    assert load_agents({})["demo"].respond == demo.respond
    assert all(agent.description.endswith(".") for agent in load_agents({}).values())


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "not a dotted path"),
        ("shop", "not a dotted path"),
        ("shop:function", "not a dotted path"),
        ("shop..function", "not a dotted path"),
        (".shop", "not a dotted path"),
        ("nowhere.agents.x", "there is no module nowhere."),
        ("shop.agents.x", "there is no module shop.agents."),
        ("broken.x", "there is no module no_such_library."),
        ("raising.x", "importing raising raised RuntimeError: no database."),
        ("shop.missing", "shop has no attribute missing."),
        ("shop.Needy", r"Needy\(\) raised TypeError: .*'key'\."),
        ("shop.Mute", r"its type Mute has no method respond\(turn\)."),
        ("shop.NUMBER", r"its type int has no method respond\(turn\)."),
        ("shop.NotAGenerator", "NotAGenerator.respond is not an async generator function"),
        ("shop.coroutine", "this is not an async generator function"),
        ("shop.plain", "this is not an async generator function"),
    ],
)
def test_a_wrong_path_is_explained_in_one_sentence(shop, path, reason):
    expected = rf"^Agent 'help' \({re.escape(path)}\): .*{reason}"
    with pytest.raises(AgentConfigError, match=expected) as caught:
        load_agents({"help": path})
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


async def test_the_demo_speaks_then_asks_its_tool_then_finishes():
    items = await collect(STATUS)
    started = next(place for place, item in enumerate(items) if not isinstance(item, str))
    call, result = items[started : started + 2]
    assert started >= 14
    assert len([item for item in items if isinstance(item, str)]) >= 80
    assert call == ToolStarted("find_order-1", "find_order", {"order": "1042"})
    assert isinstance(result, ToolCompleted)
    assert result.tool_call_id == call.tool_call_id
    assert isinstance(items[-2], Usage)
    assert items[-1] == Finish("stop")
    assert all(isinstance(item, str) and item for item in items[started + 2 : -2])
    assert {"demo", "1042", "waybill"} <= set(re.findall(r"\w+", text_of(items)))


async def test_the_demo_answers_a_status_question_without_exchange_until_it_is_corrected():
    assert "exchange" not in text_of(await collect(STATUS)).lower()
    assert "arrange the exchange" in text_of(await collect(STATUS, EXCHANGE))


async def test_the_demo_is_a_function_of_all_its_inputs():
    conversations = [
        (STATUS,),
        (STATUS, EXCHANGE),
        (STATUS, "Actually I want to exchange it!"),
        (STATUS, EXCHANGE, "No, cancel it"),
        ("Where is my order 1043?", EXCHANGE),
        (STATUS + EXCHANGE,),
        (STATUS, "x" * 500),
        (STATUS, "x" * 501),
        ("hi",),
        (),
    ]
    answers = [text_of(await collect(*inputs)) for inputs in conversations]
    assert len(set(answers)) == len(conversations)
    assert answers == [text_of(await collect(*inputs)) for inputs in conversations]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ((STATUS, "don't exchange it, I need the waybill"), "The waybill is KD-"),
        ((STATUS, "I want my money back"), "within thirty days"),
        ((STATUS, "please cancel it"), "refuse the parcel"),
        ((STATUS, "send it to 5 Elm Street"), "enter the new address"),
        ((EXCHANGE, "order 555 I mean"), "It left our warehouse"),
        ((STATUS, "thanks"), "It left our warehouse"),
        (("tell me a joke",), "I am a small demo"),
        (("我的订单 2087 到哪里了",), "它昨天离开了我们的仓库"),
        (("我的订单 2087 到哪里了", "我想换货"), "马上为您办理换货"),
        (("我的订单 2087 到哪里了", "不要换货,退款"), "三十天之内都可以退货"),
        (("我的订单 2087 到哪里了", "2088"), "2088"),
        (("{order} {0}", "{last}"), "“{last}”"),
    ],
)
async def test_the_demo_follows_the_latest_topic_and_language(inputs, expected):
    assert expected in text_of(await collect(*inputs))


async def test_the_demo_answers_chinese_in_fragments_of_two_characters():
    items = await collect("我的订单 2087 到哪里了")
    fragments = [item for item in items if isinstance(item, str)]
    assert len(fragments) >= 80
    assert next(place for place, item in enumerate(items) if not isinstance(item, str)) >= 14
    assert max(len(fragment) for fragment in fragments) <= 12


async def test_the_demo_remembers_the_order_mentioned_last():
    history: list[ChatMessage] = [
        {"role": "user", "content": "Where is 5550?"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "c", "content": "9999"},
        {"role": "assistant", "content": "Order 7777"},
    ]
    items = await collect("And when will it arrive?", history=history)
    assert ToolStarted("find_order-1", "find_order", {"order": "5550"}) in items


async def test_the_demo_types_about_25_fragments_a_second():
    began, seen = time.monotonic(), 0
    answer = demo.respond(turn(STATUS))
    async for _ in answer:
        seen += 1
        if seen == 20:
            break
    await answer.aclose()
    assert 0.7 < time.monotonic() - began < 2

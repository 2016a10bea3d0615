# ruff: noqa: RUF001  (Chinese has full-width punctuation)
"""What the demo says: a pure function of all inputs and a glance at the history."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs.agents.base import ChatMessage

DEFAULT_ORDER = "1042"
QUOTE_LENGTH = 80
"""Characters of a correction that are repeated to the user."""

_ORDER = re.compile(r"(?<![0-9])[0-9]{3,12}(?![0-9])")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_NOT = (
    r"(?:\b(?:don['’]t|do not|no longer|instead of|rather than)\s+"
    r"(?:(?:want|need|wish|like|to|an?|the|my|any)\s+){0,4}"
    r"|(?:不要|不想|不用|不需要|别|无需)\w{0,2}?)"
)
_TOPICS = {
    "exchange": r"(?:exchang\w*|swap\w*|(?:another|different|other) (?:size|colou?r)|换)",
    "refund": r"(?:refund\w*|\breturn\w*|money back|退)",
    "cancel": r"(?:cancel\w*|取消)",
    "address": r"(?:address|(?:ship|deliver|send) it to|地址)",
    "waybill": r"(?:waybill|track\w*|parcel|courier|运单|快递|物流|单号)",
    "status": r"(?:\border|where|when|status|订单|哪|什么时候|发货)",
}
"""The first topic that an input names, and does not deny, is what it asks for."""

_OPENING = {
    "en": "Hello! I am the Koda demo, so every order I know of is made up. {corrected}"
    "Let me look up order {order} for you. ",
    "zh": "您好！我是 Koda 演示客服，下面的订单都是虚构的。{corrected}"
    "请稍等，我先为您查询订单 {order} 的情况。",
}
_CORRECTED = {
    "en": "You have added “{last}”, so I start over with all {count} messages in mind. ",
    "zh": "您补充说“{last}”，所以我把这 {count} 条消息放在一起重新回答。",
}
_CLOSING = {
    "en": " Is there anything else that I can look up for you? This was a demo: nothing has been "
    "bought, sent or changed. (Case {case})",
    "zh": "请问还有什么可以帮您？以上均为演示，没有任何真实的订单被购买、寄出或更改。"
    "（编号 {case}）",
}
_REPLIES = {
    "en": {
        "exchange": "I have found it: {item}. I can arrange the exchange right away. A courier "
        "of {carrier} brings the new one on {day} and takes the old one along, so you need no "
        "second trip. Please put the old one into its box; the label for exchange {waybill} is "
        "on its way to your mailbox. The exchange costs you nothing.",
        "refund": "I have found it: {item}. You can send it back within thirty days. Hand it to "
        "any shop of {carrier} with the return label {waybill}, which is on its way to your "
        "mailbox, and the money is back on your card about three days after it has reached our "
        "warehouse in {city}.",
        "cancel": "I have found it: {item}. It has left our warehouse in {city}, so I cannot stop "
        "it any more. Simply refuse the parcel when the courier of {carrier} rings on {day}: it "
        "travels back to us under waybill {waybill}, and you get your money back.",
        "address": "I have found it: {item}. The parcel is in {city} just now, and {carrier} can "
        "still be told to bring it elsewhere. Open the page of waybill {waybill}, choose “Change "
        "delivery” and enter the new address until this evening; it will then arrive one day "
        "later than {day}.",
        "waybill": "I have found it: {item}. The waybill is {waybill}, the carrier is {carrier}. "
        "The parcel was scanned in {city} last night and sits in the van that goes out on {day}. "
        "With this number you can follow it on the carrier’s own page at any time.",
        "status": "I have found it: {item}. It left our warehouse yesterday and travels with "
        "{carrier} under waybill {waybill}. The last scan was in {city}. It should be with you on "
        "{day} before noon; if nobody opens, the courier leaves it with a neighbour and puts a "
        "card into your mailbox.",
        "other": "Order {order} is {item}, on its way with {carrier}. I am a small demo and know "
        "about orders, refunds, addresses and waybills only. Ask me where an order is, for "
        "instance, and change your mind while I am still typing: the same answer then starts over "
        "with everything that you have said.",
    },
    "zh": {
        "exchange": "查到了：{item}。我马上为您办理换货。{carrier}的快递员会在{day}送来新的商品，"
        "同时取走旧的，您不必再跑一趟。请把旧商品放回原包装，换货单 {waybill} 已经发到您的邮箱。"
        "换货不收取任何费用。",
        "refund": "查到了：{item}。三十天之内都可以退货。请带上退货单 {waybill}（已经发到您的邮"
        "箱）把商品交到{carrier}的任意网点。商品回到我们在{city}的仓库之后，大约三天退款就会到"
        "账。",
        "cancel": "查到了：{item}。包裹已经离开{city}的仓库，现在无法拦截了。{day}{carrier}的快"
        "递员上门时，请您直接拒收。包裹会按运单 {waybill} 原路返回，款项也会退还给您。",
        "address": "查到了：{item}。包裹现在在{city}，还来得及通知{carrier}改送别处。请打开运单"
        " {waybill} 的页面，选择“更改派送”，在今晚之前填写新地址。这样会比原定的{day}晚一天送到。",
        "waybill": "查到了：{item}。运单号是 {waybill}，由{carrier}承运。包裹昨晚在{city}扫描入"
        "库，将在{day}装车派送。凭这个单号，您可以随时在承运商的网站上查看包裹的位置。",
        "status": "查到了：{item}。它昨天离开了我们的仓库，由{carrier}承运，运单号是 {waybill}。"
        "最近一次扫描是在{city}。预计{day}中午之前送到；如果家里没有人，快递员会把它交给邻居，"
        "并在信箱里留一张卡片。",
        "other": "订单 {order} 是{item},正由{carrier}派送。我只是一个小小的演示,只了解订单、退"
        "款、地址和运单。您可以问我某个订单到了哪里，也可以在我还没说完的时候改变主意：同一个回"
        "答会带着您说过的一切重新开始。",
    },
}
_FACTS = {
    "en": {
        "item": ("a blue rain jacket", "a pair of hiking boots", "a desk lamp", "a tea pot"),
        "carrier": ("Northwind Parcel", "Blue Van", "Swift Post"),
        "city": ("Lyon", "Utrecht", "Graz", "Porto", "Leeds"),
        "day": ("Thursday", "Friday", "Saturday"),
    },
    "zh": {
        "item": ("一件蓝色雨衣", "一双登山鞋", "一盏台灯", "一把茶壶"),
        "carrier": ("北风快递", "蓝车物流", "迅达邮政"),
        "city": ("杭州", "武汉", "成都", "苏州", "厦门"),
        "day": ("星期四", "星期五", "星期六"),
    },
}


@dataclass(frozen=True)
class Reply:
    """`opening` comes before the tool is asked for `order`, `rest` after it said `facts`."""

    opening: str
    order: str
    facts: dict[str, str]
    rest: str


def reply_to(inputs: Sequence[str], history: Sequence[ChatMessage]) -> Reply:
    """What to say. The case number in it depends on every character of every input."""
    language = _language(inputs)
    order = _order(inputs, history)
    facts = _facts(language, order)
    last = inputs[-1].strip()[:QUOTE_LENGTH] if inputs else ""
    corrected = _CORRECTED[language].format(last=last, count=len(inputs))
    rest = _REPLIES[language][_topic(inputs)] + _CLOSING[language]
    return Reply(
        opening=_OPENING[language].format(
            order=order, corrected=corrected if len(inputs) > 1 else ""
        ),
        order=order,
        facts=facts,
        rest=rest.format(**facts, case=_case(inputs)),
    )


def _language(inputs: Sequence[str]) -> str:
    """Of the latest input that has letters at all."""
    spoken = next((text for text in reversed(inputs) if re.search(r"[^\W\d_]", text)), "")
    return "zh" if _CHINESE.search(spoken) else "en"


def _topic(inputs: Sequence[str]) -> str:
    """The latest topic counts: a correction that names none leaves the one before it."""
    for text in reversed(inputs):
        for topic, pattern in _TOPICS.items():
            asserted = re.sub(_NOT + pattern, " ", text, flags=re.IGNORECASE)
            if re.search(pattern, asserted, re.IGNORECASE):
                return topic
    return "other"


def _order(inputs: Sequence[str], history: Sequence[ChatMessage]) -> str:
    """The number mentioned last, in this turn or by the user before it."""
    earlier = [message.get("content") or "" for message in history if message["role"] == "user"]
    for text in reversed([*earlier, *inputs]):
        if found := _ORDER.findall(text):
            return str(found[-1])
    return DEFAULT_ORDER


def _facts(language: str, order: str) -> dict[str, str]:
    number = int(order)
    chosen = {name: values[number % len(values)] for name, values in _FACTS[language].items()}
    return {"order": order, "waybill": f"KD-{number * 7919 % 10**6:06}", **chosen}


def _case(inputs: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(inputs)).encode()).hexdigest()[:4].upper()

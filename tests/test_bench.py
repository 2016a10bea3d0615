"""The benchmark's judge: a fast wrong answer must not count."""

import pytest

from bench import plots
from bench.check import NotOK, Tally, check
from bench.fragments import Plan, fragments, frame
from bench.loads import FULL
from bench.main import choose
from bench.systems import SYSTEMS
from bench.targets import TARGETS, Target, outcomes, wrong

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WORDS = [f"{number}@1.500000{'!' if number == 4 else ';'}" for number in range(5)]


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def answer(*numbers: int, ids: list[int] | None = None) -> bytes:
    """A stream of these fragments, each in a chunk of its own."""
    pairs = zip(ids or range(len(numbers)), numbers, strict=True)
    return HEAD + chunked(*(frame(id, WORDS[number]) for id, number in pairs))


def judged(data: bytes, *, pieces: int = 1, numbered: bool = True) -> Tally:
    """Byte k of a stream that came in pieces arrived at second 2 + k."""
    size = -(-len(data) // pieces)
    arrivals = [(2.0 + at, data[at : at + size]) for at in range(0, len(data), size)]
    return check(arrivals, numbered=numbered)


def test_a_right_stream_is_right_wherever_the_network_cuts_it():
    data = answer(0, 1, 2, 3, 4)
    for pieces in range(1, len(data) + 1):
        tally = judged(data, pieces=pieces)
        assert (tally.delivered, tally.wrong, tally.unfinished) == (5, 0, 0), pieces
        assert tally.events == 5


def test_a_fragment_has_arrived_when_its_event_is_whole():
    data = answer(0, 1, 2, 3, 4)
    tally = judged(data, pieces=len(data))
    ends = [place + 2.0 + 2 for place in range(len(data)) if data.startswith(b"}\n\n\r\n", place)]
    assert tally.latencies == pytest.approx([end + 2 - 1.5 for end in ends])
    assert tally.last_arrival == ends[-1] + 2


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((0, 1, 3, 4), (1, 0, 0)),
        ((0, 1, 2, 2, 3, 4), (0, 1, 0)),
        ((0, 2, 1, 3, 4), (0, 0, 1)),
        ((1, 0, 0, 4), (2, 1, 1)),
    ],
)
def test_holes_doubles_and_disorder_are_counted(numbers, found):
    tally = judged(answer(*numbers))
    assert (tally.missing, tally.doubled, tally.disordered) == found


def test_ids_that_skip_a_number_are_disorder_where_ids_are_promised():
    data = answer(0, 1, 2, 3, 4, ids=[0, 1, 2, 4, 5])
    assert judged(data).disordered == 1
    assert judged(data, numbered=False).wrong == 0


def test_a_stream_without_its_last_fragment_is_unfinished():
    assert judged(answer(0, 1, 2)).unfinished == 1


def test_fragments_that_share_an_event_count_each():
    body = frame(0, "".join(WORDS[:3])) + frame(1, "".join(WORDS[3:]))
    tally = judged(HEAD + chunked(body))
    assert (tally.delivered, tally.events, tally.wrong) == (5, 2, 0)


def test_an_answer_that_is_no_stream_is_refused():
    with pytest.raises(NotOK, match="503"):
        judged(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")


async def test_a_plan_yields_its_fragments_and_marks_the_last():
    made = [text async for text in fragments(Plan(count=3))]
    assert [text.partition("@")[0] for text in made] == ["0", "1", "2"]
    assert [text[-1] for text in made] == [";", ";", "!"]


async def test_a_plan_without_a_pace_ends_in_time():
    made = [text async for text in fragments(Plan(count=10**9, limit=0))]
    assert made[-1].endswith("!")


def test_a_target_is_met_missed_or_not_measured():
    table = {
        "one_flat": {"koda": {"delivered_per_s": 300, "missing": 1}, "floor": {}},
        "replay": {"koda": {"delivered_per_s": 120_000, "doubled": 2}},
    }
    met = {outcome.target: outcome.met for outcome in outcomes(table)}
    assert met[Target("one_flat", "delivered_per_s", 2, "floor", at_least=True)] is None
    assert met[Target("replay", "delivered_per_s", 100_000, at_least=True)] is True
    table["one_flat"]["floor"] = {"delivered_per_s": 200}
    assert False in {outcome.met for outcome in outcomes(table)}
    assert wrong(table) == 3


def test_targets_name_loads_and_systems_that_exist():
    loads, systems = {load.name for load in FULL}, {kind.name for kind in SYSTEMS}
    assert {target.load for target in TARGETS} <= loads
    assert {target.reference for target in TARGETS} - {""} <= systems


def test_only_chooses_loads_and_systems_and_refuses_others():
    kinds, chosen = choose({"koda", "ttft"}, quick=False)
    assert [kind.name for kind in kinds] == ["koda"]
    assert [load.name for load in chosen] == ["ttft"]
    assert len(choose(set(), quick=False)[0]) == len(SYSTEMS)
    with pytest.raises(SystemExit, match="nonsense"):
        choose({"nonsense"}, quick=True)


def test_curves_leave_out_what_was_not_measured_or_is_below_nothing(tmp_path):
    memory = [{"watchers": n, "kb_per_client": kb} for n, kb in ((100, -8.0), (500, 40.0))]
    latency = [{"runs": n, "p50_ms": ms} for n, ms in ((1, 2.0), (20, None), (100, 5.0))]
    growth = {"latency": {"koda": latency}, "memory": {"koda": memory}}
    plots.draw({"growth": growth}, tmp_path)
    for name, points in (("latency", 2), ("memory", 1)):
        drawn = (tmp_path / f"performance-{name}.svg").read_text()
        assert drawn.count("<circle") == points

"""The whole story in one sitting, against a running system. Read it from top to bottom.

A person asks; the answer is written in one process and watched from another. This is what a page
does with the API, one call after the other.
"""

pytest_plugins = ["tests.live"]


async def test_ask_watch_drop_resume_share_correct(live):
    # A visitor opens the page, which brings a session and a CSRF token, and starts to chat.
    async with live.visitor() as anna:
        conversation = await anna.conversation("patient")

        # She asks. The answer to this call says where the answer to the question will be told.
        # The agent of this story waits at a gate, so that all that follows happens in mid-answer.
        gate = live.gate()
        asked = await anna.say(conversation, "Where is my order?", metadata={"gate": str(gate)})
        run = asked["run"]["id"]
        assert asked["merged"] is False
        assert asked["stream_url"] == f"/api/runs/{run}/stream"

        # She watches. Events are numbered from 0, and nothing is left out.
        async with anna.watch(run) as stream:
            seen = await stream.take(2)
        assert [(event.id, event.event) for event in seen] == [(0, "run_started"), (1, "delta")]

        # Her train enters a tunnel: leaving the block has dropped the connection. The run does
        # not care. She comes back with the last number that she received, and goes on behind it.
        async with anna.watch(run, last_id=seen[-1].id) as stream:
            seen += await stream.take(1)
            assert (seen[-1].id, seen[-1].event) == (2, "tool_started")

            # A second tab may watch as well. It gets everything, from the start.
            async with anna.watch(run) as second_tab:
                assert await second_tab.take(3) == seen

                # She changes her mind. The correction joins the answer that is being written:
                # the same run, which starts over with both messages instead of a second answer.
                corrected = await anna.say(conversation, "I want to exchange it!", expect=200)
                assert corrected["merged"] is True
                assert corrected["run"]["id"] == run

                # Both tabs are told that what came before is void, and read the new answer, to
                # the end. The numbers simply go on.
                rest = await stream.to_end()
                assert await second_tab.to_end() == rest
        seen += rest
        assert [event.id for event in seen] == list(range(len(seen)))
        assert [event.event for event in rest] == [
            "tool_failed",  # what the correction interrupted
            "run_restarted",
            "delta",
            "tool_started",
            "tool_completed",
            "delta",
            "run_completed",
        ]

        # Whoever comes later reads the same from the log, and the outcome from the run.
        assert [(e.id, e.event, e.data) for e in seen] == await anna.log(run)
        outcome = await anna.run(run)
        assert outcome["status"] == "done"
        assert (
            outcome["output"] == "One moment. You said: Where is my order? / I want to exchange it!"
        )

        # The run is over, so that another message is a turn of its own. Somebody else cannot
        # tell that any of this exists.
        another = await anna.say(conversation, "Thank you.")
        assert another["merged"] is False
        assert another["run"]["id"] != run
        async with live.visitor() as stranger:
            await stranger.call("GET", f"runs/{run}", expect=404)

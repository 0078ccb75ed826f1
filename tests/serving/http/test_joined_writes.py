"""Head and body of an answer go out together, and nothing that was written is ever held back for long or lost."""

import asyncio

from pyrometer.serving.http.limits import JoinedWrites


class Transport:
    def __init__(self):
        self.sent = []

    def write(self, data):
        self.sent.append(data)

    def close(self):
        self.sent.append("closed")

    def is_closing(self):
        return "closed" in self.sent


def after(act):
    """What a transport was asked to send at once, and by the loop's next turn."""

    async def run():
        transport = Transport()
        act(JoinedWrites(transport, asyncio.get_running_loop()))
        at_once = list(transport.sent)
        await asyncio.sleep(0)
        return at_once, transport.sent

    return asyncio.run(run())


def test_two_writes_in_a_row_are_one():
    def act(joined):
        joined.write(b"head ")
        joined.write(b"body")

    assert after(act) == ([b"head body"], [b"head body"])


def test_a_lone_write_goes_out_with_the_next_turn():
    assert after(lambda joined: joined.write(b"100 Continue")) == ([], [b"100 Continue"])


def test_an_answer_without_a_body_goes_out():
    def act(joined):
        joined.write(b"head")
        joined.write(b"")

    assert after(act)[1] == [b"head"]


def test_what_is_held_goes_out_before_the_end():
    def act(joined):
        joined.write(b"408")
        assert not joined.is_closing()
        joined.close()

    assert after(act) == ([b"408", "closed"], [b"408", "closed"])

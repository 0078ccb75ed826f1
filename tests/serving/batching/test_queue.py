"""What the queue promises, held against any course of requests on a simulated clock."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.queue import BatchQueue
from pyrometer.serving.batching.service_times import ServicePoint, ServiceTimes
from pyrometer.serving.batching.waiting import Waiting

SERVICE_S = 0.002


def queue_of(**settings):
    return BatchQueue(BatchPolicy(**settings), lambda _bucket, _rows: SERVICE_S)


def waiting(bucket="a", rows=1, at_s=0.0, **more):
    return Waiting(bucket, rows, at_s, **more)


def test_a_full_batch_is_closed_at_once():
    queue = queue_of(most_rows=4, flush_idle=False)
    for _ in range(5):
        assert queue.offer(waiting(), 0.0) is None
    batch = queue.take(0.0)
    assert (batch.rows, batch.reason) == (4, "full")
    assert queue.take(0.0) is None
    assert queue.rows == 1


def test_rows_are_counted_and_not_requests():
    queue = queue_of(most_rows=4, flush_idle=False)
    for rows in (2, 1, 2):
        queue.offer(waiting(rows=rows), 0.0)
    batch = queue.take(0.0)
    assert [one.rows for one in batch.requests] == [2, 1]  # the third would be the fifth row


def test_a_free_model_takes_what_waits_only_where_the_policy_says_so():
    for flush_idle, reason in ((True, "idle"), (False, None)):
        queue = queue_of(flush_idle=flush_idle)
        queue.offer(waiting(), 0.0)
        batch = queue.take(0.0)
        assert (batch.reason if batch else None) == reason


def test_the_oldest_waits_no_longer_than_the_limit():
    queue = queue_of(flush_idle=False, wait_s=0.01)
    queue.offer(waiting(at_s=0.0), 0.0)
    queue.offer(waiting(at_s=0.009), 0.009)
    assert queue.next_s(0.009) == 0.01
    assert queue.take(0.0099) is None
    assert queue.take(0.01).reason == "waited"


def test_a_batch_is_closed_while_its_earliest_deadline_can_be_kept():
    queue = queue_of(flush_idle=False, wait_s=0.01)
    queue.offer(waiting(deadline_s=0.006), 0.0)
    assert queue.next_s(0.0) == pytest.approx(0.006 - SERVICE_S)
    assert queue.take(0.0039) is None
    assert queue.take(0.004).reason == "deadline"


def test_the_earliest_deadline_goes_before_who_came_first():
    queue = queue_of()
    queue.offer(waiting("a", deadline_s=0.5), 0.0)
    queue.offer(waiting("b", deadline_s=0.2), 0.0)
    assert queue.take(0.0).bucket == "b"


def test_priority_goes_before_deadlines():
    queue = queue_of()
    queue.offer(waiting("a", deadline_s=0.2), 0.0)
    queue.offer(waiting("b", priority=1), 0.0)
    assert queue.take(0.0).bucket == "b"


def test_within_a_bucket_the_urgent_go_first():
    queue = queue_of(most_rows=2)
    usual, urgent, late = waiting(), waiting(priority=1), waiting(priority=3)
    for one in (late, usual, urgent):
        queue.offer(one, 0.0)
    assert queue.take(0.0).requests == [urgent, usual]


def test_what_starves_goes_before_all_else():
    queue = queue_of(most_rows=1, starvation_s=0.5)
    old = waiting("a", priority=3, at_s=0.0)
    queue.offer(old, 0.0)
    queue.offer(waiting("b", priority=1, at_s=0.4, deadline_s=0.55), 0.4)
    assert queue.take(0.4).bucket == "b"
    queue.offer(waiting("b", priority=1, at_s=0.5), 0.5)
    batch = queue.take(0.5)
    assert batch.requests == [old]
    assert batch.reason in {"full", "starved"}


def test_beyond_the_bound_requests_are_refused_and_told_when_there_is_room():
    queue = queue_of(most_rows=2, most_waiting=4)
    for _ in range(4):
        assert queue.offer(waiting(), 0.0) is None
    refusal = queue.offer(waiting(), 0.0)
    assert refusal.kind == "full"
    assert refusal.retry_after_s == pytest.approx(2 * SERVICE_S)
    queue.take(0.0)
    assert queue.offer(waiting(), 0.0) is None


def test_what_fits_into_no_batch_is_refused_for_good():
    assert queue_of(most_rows=4).offer(waiting(rows=5), 0.0).kind == "too_large"


def test_cancelled_requests_make_room_and_are_in_no_batch():
    queue = queue_of(most_rows=2, most_waiting=2)
    gone, stays = waiting(), waiting()
    queue.offer(gone, 0.0)
    queue.offer(stays, 0.0)
    assert queue.cancel(gone)
    assert not queue.cancel(gone)
    assert queue.offer(waiting(), 0.0) is None
    assert gone not in queue.take(0.0).requests


def test_expired_requests_leave_before_they_cost_anything():
    queue = queue_of()
    late, stays = waiting(deadline_s=0.1), waiting()
    queue.offer(late, 0.0)
    queue.offer(stays, 0.0)
    assert queue.next_deadline_s() == 0.1
    assert queue.expire(0.09) == []
    assert queue.expire(0.1) == [late]
    assert queue.take(0.1).requests == [stays]
    assert queue.next_deadline_s() == math.inf


def test_nobody_is_waited_for_while_the_server_ends():
    queue = queue_of(flush_idle=False)
    queue.offer(waiting(), 0.0)
    assert queue.take(0.0) is None
    assert queue.take(0.0, is_draining=True).reason == "drain"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"most_rows": 0}, "most_rows: got 0"),
        ({"wait_s": -1.0}, "wait_s: got -1.0"),
        ({"most_rows": 8, "most_waiting": 4}, "at least the 8 rows of a batch"),
        ({"starvation_s": 0.0}, "starvation_s: got 0.0"),
    ],
)
def test_policies_that_cannot_be_are_refused(settings, said):
    with pytest.raises(InputError, match=said):
        BatchPolicy(**settings)


def test_service_times_follow_what_batches_take():
    times = ServiceTimes.of(
        [
            ServicePoint(bucket="a", rows=1, samples_s=[0.001] * 3),
            ServicePoint(bucket="a", rows=9, samples_s=[0.005] * 3),
        ]
    )
    assert times.expected("a", 5) == pytest.approx(0.003)
    assert times.expected("a", 18) == pytest.approx(0.010)
    for _ in range(100):
        times.note("a", 5, 0.006)
    assert times.expected("a", 5) == pytest.approx(0.006, rel=0.01)
    times.note("b", 4, 0.5)
    assert times.expected("b", 4) == 0.5


REQUESTS = st.fixed_dictionaries(
    {
        "step": st.just("offer"),
        "bucket": st.sampled_from("abc"),
        "rows": st.integers(1, 5),
        "priority": st.sampled_from([1, 2, 3]),
        "within_s": st.one_of(st.just(math.inf), st.floats(0.0, 0.2)),
    }
)
STEPS = st.lists(
    st.one_of(
        REQUESTS,
        st.fixed_dictionaries({"step": st.just("wait"), "for_s": st.floats(0.0, 0.05)}),
        st.just({"step": "take"}),
        st.fixed_dictionaries({"step": st.just("cancel"), "which": st.integers(0, 200)}),
    ),
    max_size=120,
)
POLICIES = st.builds(
    BatchPolicy,
    most_rows=st.integers(1, 8),
    wait_s=st.floats(0.0, 0.05),
    flush_idle=st.booleans(),
    most_waiting=st.integers(8, 24),
    starvation_s=st.floats(0.01, 0.2),
)


class Course:
    """Drives a queue as the server does, and keeps account of every request."""

    def __init__(self, policy):
        self.queue = BatchQueue(policy, lambda _bucket, rows: 0.001 * rows)
        self.policy = policy
        self.now_s = 0.0
        self.accepted = []
        self.ends = {}  # by id: how it ended
        self.answered = []

    def step(self, step):
        getattr(self, step["step"])(**{key: value for key, value in step.items() if key != "step"})
        waiting = [one for one in self.accepted if id(one) not in self.ends]
        assert self.queue.rows == sum(one.rows for one in waiting) <= self.policy.most_waiting
        assert all(one.is_waiting for one in waiting)

    def offer(self, bucket, rows, priority, within_s):
        one = Waiting(bucket, rows, self.now_s, deadline_s=self.now_s + within_s, priority=priority)
        refusal = self.queue.offer(one, self.now_s)
        too_large = rows > self.policy.most_rows
        full = self.queue.rows + (0 if refusal is None else rows) > self.policy.most_waiting
        assert (refusal is not None) == (too_large or full)
        if refusal is None:
            self.accepted.append(one)

    def wait(self, for_s):
        self.now_s += for_s

    def cancel(self, which):
        if which < len(self.accepted):
            one = self.accepted[which]
            if self.queue.cancel(one):
                self.end(one, "cancelled")

    def take(self, **how):
        for one in self.queue.expire(self.now_s):
            assert one.deadline_s <= self.now_s
            self.end(one, "expired")
        before = [one for one in self.accepted if one.is_waiting]
        due = self.queue.next_s(self.now_s) <= self.now_s
        batch = self.queue.take(self.now_s, **how)
        if batch is None:
            assert not due
            assert not before or not self.policy.flush_idle
            return False
        self.check(batch, before)
        for one in batch.requests:
            self.end(one, "answered")
            self.answered.append(one)
        return True

    def check(self, batch, before):
        assert batch.requests
        assert batch.rows == sum(one.rows for one in batch.requests) <= self.policy.most_rows
        assert all(one.bucket == batch.bucket and one.deadline_s > self.now_s for one in batch.requests)
        starving = [one for one in before if one.arrived_s + self.policy.starvation_s <= self.now_s]
        if starving:
            assert min(starving, key=lambda one: one.number) in batch.requests

    def end(self, one, how):
        assert id(one) not in self.ends, "it ended twice"
        self.ends[id(one)] = how


@given(policy=POLICIES, steps=STEPS)
def test_nothing_is_lost_or_answered_twice_and_bounds_hold(policy, steps):
    course = Course(policy)
    for step in steps:
        course.step(step)
    while course.take(is_draining=True):
        pass
    assert course.queue.rows == 0
    assert {id(one) for one in course.accepted} == set(course.ends)
    for bucket in "abc":
        for priority in (1, 2, 3):
            numbers = [
                one.number for one in course.answered if (one.bucket, one.priority) == (bucket, priority)
            ]
            assert numbers == sorted(numbers)


@given(policy=POLICIES, steps=STEPS)
def test_with_a_free_model_nobody_waits_beyond_the_limit(policy, steps):
    """The queue is asked whenever it wants to be: who is not taken then, has waited less than the policy allows."""
    course = Course(policy)
    for step in steps:
        until_s = course.now_s + step["for_s"] if step["step"] == "wait" else course.now_s
        while course.queue.next_s(course.now_s) <= until_s:
            course.now_s = course.queue.next_s(course.now_s)
            course.take()
        course.now_s = until_s
        if step["step"] != "wait":
            course.step(step)
        waits_s = [course.now_s - one.arrived_s for one in course.accepted if one.is_waiting]
        assert max(waits_s, default=0.0) <= policy.wait_s + 1e-9

"""The simulated allocator does what torch's does: every figure here was worked out by hand from its rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings, check_settings
from pyrometer.memory.snapshots.allocator.simulator import CachingAllocator
from pyrometer.memory.snapshots.allocator.sizes import round_size

MIB = 1 << 20


def allocator(text="", capacity=None):
    return CachingAllocator(check_settings(text).settings, None if capacity is None else capacity * MIB)


@pytest.mark.parametrize(
    ("size", "reserved"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 1024, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),
        (31 * MIB + 5, 32 * MIB),
    ],
)
def test_segments_have_the_size_of_their_class(size, reserved):
    one = allocator()
    one.malloc(size)
    assert one.reserved_bytes == reserved


@pytest.mark.parametrize(
    ("text", "size", "rounded"),
    [
        ("", 1, 512),
        ("", 513, 1024),
        ("roundup_power2_divisions:4", 1200, 1536),  # 1200 <= 512 * 4: by 512 only
        ("roundup_power2_divisions:4", 1200 * MIB, 1280 * MIB),
        ("roundup_power2_divisions:4", 1024 * MIB, 1024 * MIB),
        ("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 300 * MIB, 300 * MIB),
        ("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 600 * MIB, 768 * MIB),
        ("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 2100 * MIB, 2304 * MIB),
    ],
)
def test_sizes_are_rounded(text, size, rounded):
    assert round_size(size, check_settings(text).settings) == rounded


def test_the_smallest_block_that_fits_is_taken():
    one = allocator()
    blocks = [one.malloc(size * MIB) for size in (40, 14, 30)]
    for block in blocks:
        one.free(block)
    assert one.malloc(13 * MIB).address == blocks[1].address
    assert one.malloc(25 * MIB).address == blocks[2].address
    assert one.num_device_allocs == 3


def test_the_rest_of_a_large_block_is_split_off_only_above_1_mib():
    one = allocator()
    one.free(one.malloc(20 * MIB))
    whole = one.malloc(19 * MIB)
    assert whole.size == 20 * MIB
    one.free(whole)
    part = one.malloc(18 * MIB)
    assert part.size == 18 * MIB
    assert one.malloc(2 * MIB).address == part.address + 18 * MIB


def test_small_blocks_are_split_to_the_last_512_bytes():
    one = allocator()
    blocks = [one.malloc(512) for _ in range(4096)]
    assert one.reserved_bytes == 2 * MIB
    assert all(block is not None for block in blocks)
    one.malloc(1)
    assert one.reserved_bytes == 4 * MIB


def test_free_neighbours_are_put_together():
    one = allocator()
    blocks = [one.malloc(5 * MIB) for _ in range(4)]
    for i in (0, 2, 1):
        one.free(blocks[i])
    assert one.malloc(15 * MIB).address == blocks[0].address
    assert one.num_device_allocs == 1


def test_what_another_stream_still_uses_is_not_taken():
    one = allocator()
    block = one.malloc(30 * MIB)
    one.request_free(block)
    assert one.allocated_bytes == 0
    other = one.malloc(30 * MIB)
    assert other.address != block.address
    one.complete_free(block)
    assert one.malloc(30 * MIB).address == block.address


def test_streams_and_pools_do_not_share():
    one = allocator()
    for stream, pool in ((0, 0), (7, 0), (0, 3)):
        one.free(one.malloc(30 * MIB, stream, pool))
    assert one.num_device_allocs == 3
    one.empty_cache()
    assert one.reserved_bytes == 30 * MIB  # a private pool keeps its own


def test_a_limit_to_splitting_keeps_large_blocks_for_large_requests():
    one = allocator("max_split_size_mb:32")
    one.free(one.malloc(64 * MIB))
    one.malloc(20 * MIB)  # would be split off without the limit
    assert one.reserved_bytes == 84 * MIB
    assert one.malloc(50 * MIB).size == 64 * MIB  # within 20 MiB of what there is
    one = allocator("max_split_size_mb:32")
    one.free(one.malloc(64 * MIB))
    one.malloc(40 * MIB)
    assert one.reserved_bytes == 104 * MIB  # 24 MiB more than asked for is too much


def test_a_limit_to_splitting_gives_back_just_enough_before_all():
    one = allocator("max_split_size_mb:32", capacity=200)
    blocks = [one.malloc(size * MIB) for size in (60, 40, 14)]
    for block in blocks:
        one.free(block)
    one.malloc(95 * MIB)
    assert one.num_device_frees == 2
    assert one.num_retries == 0
    assert one.reserved_bytes == 110 * MIB


def test_the_cache_is_given_back_before_a_request_fails():
    one = allocator(capacity=100)
    for block in [one.malloc(30 * MIB) for _ in range(3)]:
        one.free(block)
    assert one.malloc(80 * MIB) is not None
    assert (one.num_retries, one.num_device_frees) == (1, 3)
    assert one.malloc(40 * MIB) is None
    assert one.reserved_bytes == 80 * MIB


def test_a_segment_with_a_block_in_use_stays():
    one = allocator(capacity=100)
    one.malloc(4 * MIB)
    one.empty_cache()
    assert one.reserved_bytes == 20 * MIB
    assert one.malloc(90 * MIB) is None


def test_collection_gives_back_what_was_not_used_for_longest():
    caching_allocator = CachingAllocator(
        AllocatorSettings(garbage_collection_threshold=0.5, per_process_memory_fraction=0.9), 100 * MIB
    )
    for block in [caching_allocator.malloc(24 * MIB), caching_allocator.malloc(22 * MIB)]:
        caching_allocator.free(block)
    young = caching_allocator.malloc(21 * MIB)
    caching_allocator.free(young)
    caching_allocator.malloc(40 * MIB)  # 46 of 90 MiB are more than half
    assert caching_allocator.num_device_frees == 1
    assert caching_allocator.reserved_bytes == 62 * MIB


def test_collection_needs_a_limit_for_the_process():
    one = allocator("garbage_collection_threshold:0.1", capacity=100)
    one.free(one.malloc(60 * MIB))
    one.malloc(30 * MIB)
    assert one.num_device_frees == 0


def test_expandable_segments_grow_by_pages():
    one = allocator("expandable_segments:True")
    first = one.malloc(30 * MIB)
    assert one.reserved_bytes == 40 * MIB
    second = one.malloc(30 * MIB)
    assert second.address == first.address + 30 * MIB
    assert one.reserved_bytes == 60 * MIB
    one.malloc(600)
    assert one.reserved_bytes == 62 * MIB


def test_expandable_segments_give_back_whole_pages():
    one = allocator("expandable_segments:True")
    blocks = [one.malloc(30 * MIB) for _ in range(4)]
    one.free(blocks[1])
    one.free(blocks[2])
    one.empty_cache()  # 30 to 90 of 120 MiB are free: pages 40 to 80
    assert one.reserved_bytes == 80 * MIB
    again = one.malloc(55 * MIB)
    assert again.address == blocks[1].address
    assert one.reserved_bytes == 120 * MIB
    for block in (blocks[0], again, blocks[3]):
        one.free(block)
    one.empty_cache()
    assert one.reserved_bytes == 0
    assert not one.segments


def test_expandable_segments_join_what_plain_ones_cannot():
    plain, growing = allocator(capacity=100), allocator("expandable_segments:True", capacity=100)
    for one in (plain, growing):
        blocks = [one.malloc(20 * MIB) for _ in range(5)]
        for block in blocks[1:4]:
            one.free(block)
    plain_block, growing_block = plain.malloc(50 * MIB), growing.malloc(50 * MIB)
    assert growing_block is not None
    assert plain_block is not None  # whole segments are given back: no fragmentation between them
    plain, growing = allocator(capacity=100), allocator("expandable_segments:True", capacity=100)
    for one in (plain, growing):
        blocks = [one.malloc(5 * MIB) for _ in range(20)]
        for block in blocks[::2]:
            one.free(block)
        assert one.malloc(6 * MIB) is None
        for block in blocks[1::4]:
            one.free(block)
    assert plain.malloc(30 * MIB) is None
    assert growing.malloc(15 * MIB) is not None


SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9",
)
requests = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([1, 700, MIB, 3 * MIB, 11 * MIB, 40 * MIB]), st.integers(0, 1)), max_size=80
)  # fmt: skip


@given(requests=requests, text=st.sampled_from(SETTINGS), capacity=st.sampled_from([None, 100]))
def test_books_balance_whatever_is_asked(requests, text, capacity):
    one = allocator(text, capacity)
    live = {}
    for key, size, stream in requests:
        if key in live:
            one.free(live.pop(key))
        elif key == 30:
            one.empty_cache()
        else:
            block = one.malloc(size, stream)
            if block is not None:
                live[key] = block
        assert one.allocated_bytes == sum(block.size for block in live.values())
        mapped, used = 0, []
        for head in one.segments.values():
            address, block = head.address, head
            while block is not None:
                assert block.address == address
                assert block.after is None or block.after.before is block
                address += block.size
                mapped += block.size if block.mapped else 0
                used += [block] if block.in_use else []
                block = block.after
        assert mapped == one.reserved_bytes <= (capacity or 1 << 20) * MIB
        assert set(map(id, used)) == set(map(id, live.values()))
    for block in live.values():
        one.free(block)
    one.empty_cache()
    assert one.reserved_bytes == 0

"""torch's caching allocator: its settings, what it would have done under others, and what to advise from that."""

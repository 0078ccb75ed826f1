"""Does a series of memory readings grow for ever? For counters of the process or the allocator, where no ledger was kept."""

"""Where the time goes: capture a trace or open one, link its events, analyse them.

One way through: `reading` turns files into tables, `linking` adds the call tree, launches and steps, `analysis` turns
a `RankTrace` into records and frames, `jobs` compares ranks, `difference` compares traces, `export` writes other formats.
"""

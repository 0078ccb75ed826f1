"""Where the time goes: capture a trace or open one, link its events, analyse them.

One way through: `reading` turns files into tables, `linking` adds the call tree, launches and steps (`trace.RankTrace`),
`analysis` turns that into records and frames, `reporting` puts them together, `jobs` compares ranks, `difference` compares
traces, `export` writes other formats. Analyses stand on what several of them need: `naming` (what names mean), `timing`
(when what ran), `program` (call tree, lines, modules, phases), `costs` (FLOP and bytes), `dependencies` (what waited for
what) and `health` (how far all that can be trusted).
"""

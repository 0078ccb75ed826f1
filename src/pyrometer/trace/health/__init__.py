"""What is wrong with a trace, before any figure is read from it: each defect with what it makes unreliable.

Errors make confidence low, warnings medium; information says what the trace cannot answer and lowers nothing.

| threshold | value | why |
|---|---|---|
| `FEW_EVENTS` | 10 | fewer operators and device events than one small layer: the schedule recorded nothing |
| `LOST_SHARE` | 1 % | more lost than that moves every sum by about as much as a change that one looks for |
| `ORPHAN_SHARE` | 5 % | a queue that was filled before recording began leaves a few; more means lost launches |
| `LOST_LAUNCHES` | 5 %, and 5 | zero-sized launches leave none; graph capture is told apart |
| `OVERHEAD_SHARE` | 5 % | the profiler's own time, above which host times say more about it than about the program |
| `EARLY_NS` | 1 µs | device and host clocks are converted, and old files round to whole microseconds |
| `EARLY_SHARE` | 1 % | single conversions go wrong; more means that the clocks drift apart |
| `NESTING_SHARE` | 1 % | a few events overlap by rounding; self times stay right to about this share |
| `LONGEST_NS` | 1 h | no kernel or copy runs for an hour: its end was converted wrongly, or never recorded |
| `STRAY_SHARE`, `SILENT_SHARE` | 1 %, 90 % | one in a hundred events that stretches the span tenfold carries a wrong time |
"""

"""What torch.compile did, what it cost, what to change.

One way through the room: `collecting` records torch's own structured trace as a `CompileLog` (from this process or from
files); `breaks`, `recompiles`, `costs`, `fusion` and `graphs` are pure functions from that log to records; `report` puts them
together as a `CompileReport`; `inspecting` runs a workload and adds what only running shows. `shapes` turns varying
sizes into few compiled graphs. Everything private of torch is asked for in `private`, and nowhere else.
"""

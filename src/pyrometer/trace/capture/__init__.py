"""Recording traces: of a workload, of a script as it runs, of a process that is running already.

`workload` and `script` and `attach` are the three ways in; `record` says what a capture was asked for and what it cost.
"""

"""What the evidence means: rules, findings, source linting, the audit.

A rule reads evidence (source text, a measurement, a trace, a compile report, a memory profile, ...) and yields findings.
Each rule is one file under the folder of its family; its module docstring is its documentation.
"""

"""The verbs of the command line as functions, each returning the document that the verb prints with `--json`."""

"""The programs are material, not tests: pytest must not import them to look for doctests."""

collect_ignore_glob = ["clean/*.py", "leaking/*.py"]

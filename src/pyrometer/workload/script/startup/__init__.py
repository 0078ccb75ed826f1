"""The folder that is put first on the PYTHONPATH of a script under observation.

It is imported there as a top-level folder, not as part of `pyrometer`: everything in it uses nothing but the standard
library and its own siblings.
"""

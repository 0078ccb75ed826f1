"""What a record says, in words and figures: the one place where records become text, shared by every view.

The views (terminal, Markdown, HTML) only lay these out. Nothing here decides: a verdict, an interval or a caveat
comes from the record.
"""

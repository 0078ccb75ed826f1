"""Where others start the training: what runs it is observed, and ends in the document of `pyrometer check`."""

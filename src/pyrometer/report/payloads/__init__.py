"""What the interactive part of a page draws: data blocks, made from a document and its attachments."""

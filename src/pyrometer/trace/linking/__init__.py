"""What belongs to what: the call tree of each thread, device work to its launch, events to their step."""

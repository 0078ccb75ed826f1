"""Memory snapshots of the device's allocator: read, explained, compared and recorded."""

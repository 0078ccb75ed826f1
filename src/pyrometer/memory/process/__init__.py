"""What the operating system says of the process, and why it grows where tensors do not."""

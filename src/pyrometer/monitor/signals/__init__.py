"""What is read beside the calls: the machine, the device, torch's allocator and compiler; each by the monitor's thread alone."""

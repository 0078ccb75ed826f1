"""The pytest plugin: the fixture `pyrometer`, with which tests measure and keep contracts."""

"""The short answer to what a verb was asked: what stands on one screen."""

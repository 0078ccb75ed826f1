"""From a target and a recipe to a server that is ready."""

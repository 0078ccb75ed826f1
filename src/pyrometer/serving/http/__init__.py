"""The Open Inference Protocol over ASGI."""

"""A model behind HTTP: batching on a simulated or real clock, warm-up, sizing, the Open Inference Protocol."""

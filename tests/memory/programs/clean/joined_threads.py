"""Each batch is preprocessed by two threads that end with it."""

import threading

import torch


def work(chunk, results, position):
    results[position] = (chunk - chunk.mean()) / chunk.std()


def make():
    images = torch.rand(4, 3, 16, 16)

    def step():
        results = {}
        threads = [
            threading.Thread(target=work, args=(chunk, results, position))
            for position, chunk in enumerate(images.chunk(2))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return torch.cat([results[0], results[1]]).mean().item()

    return step


EXPECTED = {"verdict": "stable", "note": "threads that end let go of their frames"}

"""A speech front end: a worker thread computes features of incoming audio while the caller waits for its reply."""

import threading
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import pyrometer as pm


@dataclass
class Request:
    audio: Tensor
    reply: Tensor | None = None
    done: threading.Event = field(default_factory=threading.Event)


class FrontEnd(nn.Module):
    def __init__(self, bands: int = 40) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.mel = nn.Linear(201, bands, bias=False)
        self.encode = nn.GRU(bands, 48, batch_first=True)

    @torch.inference_mode()
    def forward(self, audio: Tensor) -> Tensor:
        frames = audio.unfold(0, 400, 160) * self.window
        power = torch.fft.rfft(frames).abs().square()
        return self.encode(self.mel(power.clamp(min=1e-6).log()).unsqueeze(0))[0][0, -1]


class Worker:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.mailbox: list[Request] = []
        self.arrived = threading.Condition()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        torch.set_num_threads(1)
        while True:
            with self.arrived:
                self.arrived.wait_for(lambda: self.mailbox)
                request = self.mailbox.pop(0)
            request.reply = self.model(request.audio)
            request.done.set()

    def submit(self, audio: Tensor) -> Request:
        request = Request(audio)
        with self.arrived:
            self.mailbox.append(request)
            self.arrived.notify()
        return request


class PatientClient:
    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def transcribe(self, audio: Tensor) -> Tensor:
        request = self.worker.submit(audio)
        while request.reply is None:
            time.sleep(0.02)
        return request.reply


class NotifiedClient(PatientClient):
    def transcribe(self, audio: Tensor) -> Tensor:
        request = self.worker.submit(audio)
        request.done.wait()
        return request.reply


def client(kind: type[PatientClient]) -> pm.Call:
    torch.manual_seed(0)
    worker = Worker(FrontEnd().eval())
    return pm.Call(kind(worker).transcribe, torch.randn(16_000), unit="utterances")


def slow() -> pm.Call:
    return client(PatientClient)


def fast() -> pm.Call:
    return client(NotifiedClient)

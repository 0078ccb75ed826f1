from __future__ import annotations

import re

import pytest
import torch


@pytest.mark.exhaustive
def test_learns_and_saves_the_best_only_when_asked(run_example, tmp_path):
    sizes = ("--epochs", "4", "--train-size", "240", "--val-size", "60", "--batch-size", "16")
    output = run_example("cnn_classifier.py", *sizes, "--save", "best.pt")
    epochs = re.findall(
        r"^epoch \d/4  train loss ([\d.]+) acc [\d.]+  val loss [\d.]+ acc ([\d.]+)", output, re.MULTILINE
    )
    losses = [float(loss) for loss, _ in epochs]
    accuracies = [float(accuracy) for _, accuracy in epochs]
    assert len(epochs) == 4
    assert losses[-1] < 0.8 * losses[0]
    assert max(accuracies) > 1.5 / 6, "better than a guess among six classes"
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert round(best["acc"], 3) == max(accuracies)
    assert [file.name for file in tmp_path.iterdir()] == ["best.pt"]


def test_without_save_nothing_is_written(load_example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["cnn_classifier.py", "--epochs", "1", "--train-size", "12", "--val-size", "12"]
    )
    load_example("cnn_classifier.py").main()
    assert "best val acc" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_augmentation_is_for_training_only(load_example):
    shapes = load_example("cnn_classifier.py")
    training, validation = shapes.ShapesDataset(12), shapes.ShapesDataset(12, train=False)
    image, label = validation[7]
    assert image.shape == (3, 32, 32)
    assert label == 1
    assert torch.equal(image, validation[7][0])
    assert not torch.equal(training[7][0], training[7][0])

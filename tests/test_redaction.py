"""What is taken for a secret, and what is not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pyrometer.place import Place
from pyrometer.redaction import STAND_IN, Redactor, redacted
from pyrometer.report.attachments import SourceText

RECORDED = Path(__file__).parent / "recorded"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEcanary\nAAcanary==\n-----END RSA PRIVATE KEY-----"

SECRETS = [
    "train.py --password canary --epochs 3",
    "train.py --api-key=canary",
    "train.py --hf-token 'canary canary'",
    "curl -H 'Authorization: Basic canary='",
    "Authorization: Bearer canary.1234",
    "postgresql+psycopg2://me:canary@host:5432/db",
    "https://canarycanarycanarycanary@sentry.io/42",
    "https://host/data.zip?X-Amz-Signature=canary&part=3",
    "WANDB_API_KEY=canary python train.py",
    "AWS_SECRET_ACCESS_KEY='canary'",
    'login(token="canary")',
    'os.environ["HF_TOKEN"] = "canary"',
    'os.getenv("DB_PASSWORD", "canary")',
    'parser.add_argument("--password", type=str, default="canary")',
    "if password == 'canary'",
    "dataset of db.token=canary-1 at noon",
    "train.py +trainer.wandb.api_key=canary",
    "X-Api-Key: canary-1",
    "Cookie: session=canary",
    "password: canary1",
    'requests.get(url, auth=("me", "canary"))',
    'wandb.login(key="canary")',
    'invalid password "canary"',
    'password = """canary"""',
    "GITHUB_PAT=canary",
    '{"clientSecret": "canary", "region": "eu"}',
    "password: str = 'canary'",
    "AKIACANARY7EXAMPLE00 was refused",
    "ghp_canary0123456789canary0123456789",
    "github_pat_canary0123456789canary",
    "glpat-canary0123456789canary",
    "hf_CanaryAbCdEfGhIjKlMnOpQrStUvWxYz",
    "sk-proj-canary0123456789-canary",
    "xoxb-canary-0123456789",
    "eyJcanary12345.eyJcanary12345.canary-signature",
    PEM,
]

HARMLESS = [
    "--pad-token <pad> --max-tokens 512 --tokenizer gpt2 --token-dim 64 --key size",
    "bearer of news, basic operators: query, key and value",
    "tokens = tokenizer(text); token = tokens[0]; mask_token = '[MASK]'",
    "12 ms per token: 3 launches; next_token=5",
    "aten::_scaled_dot_product_flash_attention(query, key, value, is_causal=True)",
    "git@github.com:me/model.git and https://host:8080/path@v2",
    "password = os.environ['DB_PASSWORD']; login(token=token, secret=cfg.secrets[2])",
    'parser.add_argument("--password", required=True)',
    "df[['token', 'label']] of hf_transformers_model_of_mine",
    "sk-learn-pipeline-of-mine; secret_scale = 0.5",
    "unexpected token 'x'; self.token=token; x.mask_token=5; key: 123456; each token: 12345678",
    "compiled in /home/me/passwords/tokens.py:41 forward",
    "if token == 'cls' or kind == {InputKind.TOKEN: 'token'}",
    "f(x, dep_token=dep_token0); memory_token=m[3]; global_token='first one'",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_is_known_by_name_or_shape_is_taken_out(text):
    kept = Redactor({}).text(text)
    assert "canary" not in kept.lower()
    assert STAND_IN in kept


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_sounds_like_a_secret_stays(text):
    assert Redactor({}).text(text) == text


def test_a_secret_of_the_environment_or_the_command_line_is_found_wherever_it_turns_up():
    redactor = Redactor(
        {"API_TOKEN": "canary-1", "HOME": "/home/me", "DATABASE_URL": "db://me:canary-2@host"},
        ["train.py", "--passphrase", "canary-3", "--name", "kept"],
    )
    told = redactor.text("refused canary-1, canary-2 and canary-3 of kept in /home/me")
    assert told == "refused REDACTED, REDACTED and REDACTED of kept in /home/me"


def test_short_values_are_no_part_of_other_words():
    redactor = Redactor({"API_TOKEN": "resnet"})
    assert redactor.text("resnet50 is no resnet") == f"resnet50 is no {STAND_IN}"


def test_a_record_is_the_same_object_unless_it_holds_a_secret():
    place = Place(file="model.py", line=3, source="x = f(x)")
    assert redacted(place) is place
    assert redacted([place, {"a": [1.0, None]}])[0] is place
    told = redacted(Place(file="model.py", line=3, source="login(password='canary')"))
    assert told == Place(file="model.py", line=3, source="login(password='REDACTED')")


def test_a_private_key_goes_over_several_lines_and_lines_keep_their_numbers():
    source = SourceText(file="model.py", first_line=1, lines=["KEY = (", *PEM.split("\n"), ")", "x = 1"])
    kept = redacted(source)
    assert "canary" not in "".join(kept.lines)
    assert (len(kept.lines), kept.lines[-1]) == (len(source.lines), "x = 1")


@pytest.mark.parametrize("name", ["broken_perception-workload", "slow_loader-workload", "job-last"])
def test_what_was_recorded_of_programs_without_secrets_stays_as_it_is(name):
    document = json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
    assert redacted(document) is document


@pytest.mark.parametrize(
    "line",
    ["token" + "a" * 30_000, "token " + "a." * 15_000, "token: " + " " * 30_000, "key eyJ" + "a-" * 15_000],
)
def test_a_long_line_takes_time_in_proportion_to_its_length(line):
    # With patterns of names and gaps that have no end, one such line takes minutes.
    assert Redactor({}).text(line) == line

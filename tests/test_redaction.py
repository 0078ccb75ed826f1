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
    PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/canaryKEY",
    "AuthToken: canary0123456789abcdef0123456789",
    "AccountName=acc;AccountKey=canary+abc/def0123456789==;EndpointSuffix=core.windows.net",
    "Driver={ODBC};Server=h;Uid=me;Pwd=canary;",
    "postgres://me:p/canary@host:5432/db",
    "mysql://me:p@1#canary@host/db",
    "401: Bearer canaryAbCdEfGhIj was refused",
    "Cookie: a=1; session=canary; b=2",
    "requests.get(url, cookies={'sid': 'canary'})",
    "db:\n  password: canary\n  user: me",
    "machine api.host login user password canary0123",
    "curl -u me:canary https://host",
    "SSHPASS=canary; sshpass -p canary ssh host",
    "mysql -u root -pcanary runs",
    "wandb login canary0123456789abcdef0123456789abcdef01",
    '{"username": "me", "key": "canary0123456789abcdef"}',
    "/mnt/data/password=canary/part-0.parquet",
    "https://discord.com/api/webhooks/123456789012345678/canary_ABCdefGHIjklMNOpqrSTUvwxYZ",
    "https://api.telegram.org/bot123456789:AAcanaryAbCdEfGhIjKlMnOpQrStUvWxYz/send",
    "xapp-1-A0canary-123456-abcdef",
    "sk_live_51canary0123456789abcdef",
    "hvs.canaryCAESIJ0123456789abcdef",
    "GOCSPX-canaryAbCdEfGhIjKlMnOpQrSt",
    "gsk_canary0AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEf",
    "nvapi-canaryAbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "SG.canary0123456789abcd.canary0123456789abcdefghijk",
    "ExpiredToken: IQoJb3JpZ2luX2VjEPr//////////wEaCXVzLWVhc3QtMSJHMEUCIQDcanary0",
    "https://hooks.slack.com/workflows/T00000000/A0000/1234/canaryXXXXXXXXXXXXXXXXXX",
    "headers={'authorization': b'Basic Y2FuYXcanary=='}",
    'curl -H "X-Auth-Token: canary99" https://host',
    "curl -s -b 'session=canary1' https://host",
    "docker login -u me -p canary99 registry",
    "psql -h db -U me -p canary-hunter2",
    "openssl rsa -in key.pem -passin pass:canary99",
    "PermissionError: invalid credentials ('me', 'canary')",
    "<RequestsCookieJar[<Cookie sid=canary for host/>]>",
    "glrt-canary0123456789abcd",
    "dckr_pat_canary0123456789abcdefghi",
    "sntrys_eyJpYXQiOjE2canary0123456789abcdef",
    "figd_canary0123456789abcdefghij",
    "ATATT3xFfGF0canary0123456789abcdefghijklmnop",
    "refreshed with 1//0gcanary0123456789abcdefghij-klmnopqrstuvwxyz012345678",
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
    "commit dd8b5b7c0f1e2d3c4b5a69788796a5b4c3d2e1f0 of run 20261123-234517-a1b2c3",
    "key: f7zkq2x5m4n3b2v1c0x9z8l7k6j5h4g3f2d1; cache key = fx7zkq2x5m4n3b2v1c0x9z8l7k6j5h4g",
    "triton_poi_fused_add_mul_0d1d2d3de4de; sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32",
    "password: Optional[str], cookie: str",
    "def connect(host: str, password: SecretStr) -> None:",
    "google-auth==2.40.3 and python -u train.py; docker run --user 1000:1000 image",
    "uint64_t __security_cookie = 0x00002B992DDFA232;",
    "train.py -p fp16 --passes 3; wrong password for user123 of bot7; webhooks",
    "tcp://localhost:29500/ranks@2",
    "https://[::1]:8080/a@b and file:///home/me/x@2/y.py",
    "attn_token=5 ways; python -u serve.py --user me -p 8080; key-value store; secret_scale_of_attention",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL; GPU-0b1f2c3d-4e5f-6789-abcd-ef0123456789",
    "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
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


@pytest.mark.parametrize(
    "argv",
    [
        ["mysql", "-u", "root", "-p", "canary"],
        ["t.py", "-p", "c4nary!canary"],
        ["t.py", "--pass", "canary"],
        ["t.py", "--password", "$canary"],
        ["t.py", "--password", "<canary>"],
        ["t.py", "--wandb-key", "canary0123456789abcdef0123456789"],
        ["t.py", "-H", "Authorization: Bearer canary"],
        ["t.py", "--to", "AccountName=a;AccountKey=canary0123=="],
    ],
)
def test_words_of_a_command_line_are_taken_as_they_are(argv):
    assert "canary" not in " ".join(Redactor({}, argv).argv(argv))


@pytest.mark.parametrize(
    "argv",
    [
        ["t.py", "-p", "bf16"],
        ["t.py", "--pass", "2"],
        ["t.py", "--sort-key", "size"],
        ["t.py", "-p", "8080", "-u", "me"],
    ],
)
def test_short_flags_have_other_meanings(argv):
    assert Redactor({}, argv).argv(argv) == argv


def test_the_password_of_an_address_is_found_alone_and_unquoted():
    redactor = Redactor({}, ["t.py", "db://me:can%40ary/x@host"])
    assert (
        redactor.text("no user with can@ary/x here, nor can%40ary/x")
        == "no user with REDACTED here, nor REDACTED"
    )


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

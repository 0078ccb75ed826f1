"""Ledgers to test with."""

from __future__ import annotations

import pytest
from services import RedisServer

from pyrometer.rollout.ledger import open_ledger


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("redis")).begin()
    yield server.url
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql", "redis"])
def location(request, tmp_path):
    """A place for a ledger, empty."""
    if request.param == "sqlite":
        return str(tmp_path / "store")
    if request.param == "postgresql":
        return request.getfixturevalue("database")
    url = request.getfixturevalue("redis_url")
    import redis

    redis.Redis.from_url(url).flushdb()
    return url


@pytest.fixture
def ledger(location):
    return open_ledger(location)

from compiler_fixtures import fresh_dynamo

__all__ = ["fresh_dynamo"]

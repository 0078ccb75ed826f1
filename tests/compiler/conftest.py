from compiler_fixtures import fresh_dynamo, quick_compilations

__all__ = ["fresh_dynamo", "quick_compilations"]

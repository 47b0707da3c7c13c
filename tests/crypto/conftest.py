"""The same settings for property tests as the wire's."""

from tests.wire import conftest as _settings  # noqa: F401

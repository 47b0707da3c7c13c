"""Property tests: no deadlines, the same examples every time; `HYPOTHESIS=explore` looks for others."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("weir", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", settings.get_profile("weir"), derandomize=False, max_examples=5000)
settings.load_profile("explore" if os.environ.get("HYPOTHESIS") == "explore" else "weir")

"""How many examples each property is tried with."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = 60 if os.environ.get("DASEC_CI") == "1" else 40
"""If it names no number: each run draws others, so few are enough."""

# Without a clock: the machine may be busy with something else.
settings.register_profile(
    "dasec", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dasec")

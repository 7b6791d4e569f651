"""How hypothesis runs here: without a clock, because the machine may be busy with something else."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("dasec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dasec")

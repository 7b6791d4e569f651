from __future__ import annotations

from pathlib import Path

import pytest

from .fakelibvirt import FakeLibvirt


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> FakeLibvirt:
    return FakeLibvirt(tmp_path, request.param)

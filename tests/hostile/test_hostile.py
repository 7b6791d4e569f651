"""A user who means harm, in a group of his own, beside an honest workload: ten seconds of it.

`make hostile` is the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import user, world

pytestmark = pytest.mark.host

SECONDS = 10.0


def test_a_user_who_means_harm_harms_nobody_and_everything_is_put_back(tmp_path: Path) -> None:
    found = world.run(SECONDS, tmp_path, seed=1)
    assert found.wrong == []
    assert found.honest_writes > 0
    assert all(found.deeds[kind] > 0 for kind in user.KINDS), found.deeds

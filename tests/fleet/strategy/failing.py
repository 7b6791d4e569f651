"""Ansible's usual strategy, but tasks fail that DASEC_FAIL names, after they have done their work, and hosts
are out of reach after the task that DASEC_LOSE names.

Both are JSON, {"host": "task"}. DASEC_SEEN is the file to which every task's name goes.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.strategy.linear import StrategyModule as Linear


class StrategyModule(Linear):  # type: ignore[misc]  # ansible-core has no types
    """The name under which Ansible looks for it."""

    def __init__(self, tqm: Any) -> None:  # noqa: ANN401
        super().__init__(tqm)
        self._lost: set[str] = set()

    def _queue_task(self, host: Any, task: Any, task_vars: Any, play_context: Any) -> None:  # noqa: ANN401
        name = task.get_name().removeprefix("dasec : ")
        with open(os.environ["DASEC_SEEN"], "a", encoding="utf-8") as seen:
            seen.write(f"{host.name} {name}\n")
        if json.loads(os.environ["DASEC_FAIL"]).get(host.name) == name:
            task = task.copy()
            task.failed_when = [True]
        if host.name in self._lost:
            task_vars = {**task_vars, "ansible_connection": "ssh"}
        if json.loads(os.environ["DASEC_LOSE"]).get(host.name) == name:
            self._lost.add(host.name)
        super()._queue_task(host, task, task_vars, play_context)

"""A weigher for Nova's scheduler: prefers hosts whose vCPUs would wait least with the new server.

It asks `dasec fleet extender`, which has numbers, simulation and cache (docs/fleet.md). nova.conf:

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers
    weight_classes = dasec_nova.DasecWeigher

    [dasec]
    extender_url = http://127.0.0.1:8888

`weight_classes` takes several lines. This file must be importable by nova-scheduler.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Protocol

from nova import conf
from nova.scheduler import weights
from oslo_config import cfg
from oslo_log import log

LOG = log.getLogger(__name__)

BEST = 10
"""What the extender says of a host on which nobody would wait (extender/v1 MaxExtenderPriority)."""


CHUNK_BYTES = 1 << 16
MOST_BYTES = 1 << 24
"""Of an answer: the scores of a hundred thousand hosts."""

ILL = (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, RecursionError)
"""What reading an answer can raise that is none."""


class Host(Protocol):
    """Nova's HostState, as far as it is asked."""

    nodename: str


class Weighed(Protocol):
    """Nova's WeighedObject."""

    obj: Host


class Flavor(Protocol):
    """What kind of server is wanted."""

    vcpus: int


class Wanted(Protocol):
    """Nova's RequestSpec."""

    flavor: Flavor


conf.CONF.register_opts(
    [
        cfg.URIOpt("extender_url", default="http://127.0.0.1:8888", schemes=["http", "https"]),
        cfg.FloatOpt("timeout", default=0.5, min=0.01, help="Seconds; later it has no say."),
        cfg.FloatOpt("weight_multiplier", default=1.0),
    ],
    group="dasec",
)


class DasecWeigher(weights.BaseHostWeigher):
    """All hosts are asked for at once; if nobody answers, none is better than another."""

    minval, maxval = 0, BEST
    """Fixed, since the best of bad hosts is no good one (nova.weights.normalize)."""

    def weight_multiplier(self, host_state: Host) -> float:
        """What the operator gives our word beside others'."""
        return float(conf.CONF.dasec.weight_multiplier)

    def weigh_objects(self, weighed_obj_list: Sequence[Weighed], weight_properties: Wanted) -> list[float]:
        """One number a host, in order; the highest is the best."""
        names = [each.obj.nodename for each in weighed_obj_list]
        try:
            scores = _ask(names, weight_properties.flavor.vcpus)
        except ILL as error:
            LOG.warning("dasec: no word on waiting: %s", error)
            scores = {}
        return [scores.get(name, 0) for name in names]

    def _weigh_object(self, obj: Host, weight_properties: Wanted) -> float:
        raise NotImplementedError("weigh_objects does it for all hosts at once")


def _ask(names: Sequence[str], vcpus: int) -> Mapping[str, float]:
    """The score of each host for a server that wants so many cores. Raises one of ILL."""
    wants = {"containers": [{"name": "server", "resources": {"requests": {"cpu": str(vcpus)}}}]}
    question = {"Pod": {"metadata": {"name": "server"}, "spec": wants}, "NodeNames": names}
    url = conf.CONF.dasec.extender_url.rstrip("/") + "/prioritize"
    request = urllib.request.Request(url, json.dumps(question).encode(), {"Content-Type": "application/json"})
    until = time.monotonic() + conf.CONF.dasec.timeout
    with urllib.request.urlopen(request, timeout=conf.CONF.dasec.timeout) as answer:
        scores = {str(each["Host"]): each["Score"] for each in json.loads(_body(answer, until))}
    if not all(0 <= score <= BEST for score in scores.values()):
        raise ValueError(f"a score that is not from 0 to {BEST}")
    return scores


def _body(answer: http.client.HTTPResponse, until: float) -> bytes:
    """All of it, in time as a whole: the timeout of a socket is one of each read."""
    text = b""
    for part in iter(lambda: answer.read1(CHUNK_BYTES), b""):
        text += part
        if time.monotonic() > until or len(text) > MOST_BYTES:
            raise TimeoutError("no whole answer in time")
    return text

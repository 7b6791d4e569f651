"""Real container engines: Debian's packages, unpacked into namespaces of a test's own and started there."""

import os

# Before cri.py imports gRPC: with its handlers one in some hundred programs that are started beside an open
# channel is aborted between fork and exec. None of them uses the channel.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

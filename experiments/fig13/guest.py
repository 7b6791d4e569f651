"""run.py in a QEMU guest of our patched kernel; what it measured comes back by the console.

python experiments/fig13/guest.py DIRECTORY [OPTIONS OF run.py]
"""

from __future__ import annotations

import base64
import io
import re
import sys
import tarfile
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from tests.vm.built import patched_image  # noqa: E402
from tests.vm.guest import CgroupLayout, GuestKernel, run_in_guest  # noqa: E402

TIMEOUT_S = 6 * 3600
BEGIN, END = "RESULT-BEGIN", "RESULT-END"


def main() -> None:
    """Boot, measure, unpack."""
    out, *options = sys.argv[1:]
    command = (
        f"cd {REPOSITORY} && .venv/bin/python experiments/fig13/run.py --out /run/fig13 {' '.join(options)};"
        f" status=$?; echo {BEGIN}; tar -C /run/fig13 -cz . | base64; echo {END}; exit $status"
    )
    kernel = GuestKernel("patched", patched_image(), ())
    with tempfile.TemporaryDirectory() as scratch:
        run = run_in_guest(kernel, CgroupLayout.V2, command, Path(scratch), TIMEOUT_S)
    print(run.console.split(BEGIN)[0])
    found = re.search(rf"^{BEGIN}$(.*?)^{END}$", run.console, re.MULTILINE | re.DOTALL)
    if found is not None:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(found[1]))) as archive:
            archive.extractall(out, filter="data")
    if run.exit_status != 0:
        sys.exit(f"fig13: the guest ended with {run.exit_status}")


if __name__ == "__main__":
    main()

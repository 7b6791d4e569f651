"""`make scx-selftests`: the kernel's own selftests of sched_ext, on the guest kernel that ours is tried on.

python -m tests.vm.scx_selftests
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from guests.built import REPOSITORY, sched_ext_image
from guests.throw_away import CgroupLayout, GuestKernel, run_in_guest

TIMEOUT_S = 3600
TOOLS = str(REPOSITORY / "kvm-patches/sched_ext-tools")


def main() -> None:
    """Build, boot, and print what each test said of itself."""
    built = subprocess.run([TOOLS], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit(built.returncode)
    kernel = GuestKernel("sched_ext", sched_ext_image(), ())
    job = f"cd {built.stdout.splitlines()[-1]}/selftests && ./runner"
    with tempfile.TemporaryDirectory() as scratch:
        run = run_in_guest(kernel, CgroupLayout.V2, job, Path(scratch), TIMEOUT_S)
    said = ("ok ", "not ok ", "PASSED:", "SKIPPED:", "FAILED:")
    print("\n".join(line for line in run.console.splitlines() if line.startswith(said)))
    sys.exit(run.exit_status or ("FAILED:  0" not in run.console))


if __name__ == "__main__":
    main()

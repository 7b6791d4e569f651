"""Maps the import name `dasec` to the folder daemon/; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    package_dir={"dasec": "daemon"},
    packages=["dasec", *(f"dasec.{name}" for name in find_packages("daemon"))],
    license_files=["LICENSE", "LICENSES/GPL-2.0-only.txt"],  # the second: of what runs in the kernel
    package_data={"dasec": ["py.typed"], "dasec.bpf": ["*.c", "*.h", "*.o"]},
)

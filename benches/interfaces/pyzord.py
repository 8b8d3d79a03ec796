# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs pyzord, whose path and arguments are told, where Python has no gdbm: on a dictionary in its place, which is faster."""

import runpy
import sys
import types


class Records(dict):
    """Records as gdbm has them, in memory."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value.encode() if isinstance(value, str) else value)

    def sync(self):
        """There is no disk."""

    reorganize = close = sync


try:
    import dbm.gnu
except ImportError:
    gdbm = types.ModuleType("gdbm")
    gdbm.open = lambda *_: Records()
    gdbm.error = OSError
    sys.modules["gdbm"] = gdbm
print("gdbm" if "gdbm" not in sys.modules else "records in memory", flush=True)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")

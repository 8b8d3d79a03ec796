#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints Pyzor's digest of each message whose file name comes on standard input; an empty line where there is none."""
import email
import sys

from pyzor.digest import DataDigester

for line in sys.stdin:
    try:
        with open(line.rstrip("\n"), "rb") as message:
            print(DataDigester(email.message_from_bytes(message.read())).value, flush=True)
    except Exception:  # Pyzor fails on some of what people send; that is a message without a digest.
        print(flush=True)

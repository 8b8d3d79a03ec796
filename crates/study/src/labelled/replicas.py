#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes near-replicas of messages: replicas.py CORPUS OUT COPIES < names of files in CORPUS

CORPUS holds mutate.py, which has MUT and PRESET (names of mutations, and names of lists of them) and
mutate(bytes, [names], seed=...) -> (bytes, ...). Writes OUT/MUTATION/NUMBER-COPY, and prints the mutations in their order.
"""
import os
import sys

corpus, out, copies = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.dont_write_bytecode = True
sys.path.insert(0, corpus)
import mutate  # noqa: E402

files = [line.rstrip("\n") for line in sys.stdin]
for name in list(mutate.MUT) + list(mutate.PRESET):
    print(name)
    os.makedirs(os.path.join(out, name), exist_ok=True)
    for number, file in enumerate(files):
        with open(os.path.join(corpus, file), "rb") as message:
            raw = message.read()
        for copy in range(copies):
            replica = mutate.mutate(raw, mutate.PRESET.get(name, [name]), seed="0/%d" % copy)[0]
            with open(os.path.join(out, name, "%03d-%02d" % (number, copy)), "wb") as file_out:
                file_out.write(replica)

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes copies of advertisements: copies.py SET CORPUS SENTENCES OUT BASES COPIES < names of files in CORPUS

Of these files BASES are taken at equal distances. OUT/KIND/NN has the COPIES of one base in one disguise. Prints each KIND in
its order. SET is:

evasions   of messages with 80 to 400 words, by streams/evade.py: KINDS, readable(bytes) -> text, sentences(path), by which
           SENTENCES, an mbox, becomes padding, and make(kind, text, sentences, copies)
mutations  of messages with more than 1,500 bytes, by mutate.py: MUT, PRESET (names of mutations, and names of lists of them),
           and mutate(bytes, [names], seed=...) -> (bytes, names that were applied, ...). A base to which a mutation cannot be
           applied has no copies of that kind.
"""
import email
import multiprocessing
import os
import re
import sys

what, corpus, sentences, out = sys.argv[1:5]
bases, copies = map(int, sys.argv[5:7])
sys.dont_write_bytecode = True
sys.path[:0] = [corpus, os.path.join(corpus, "streams")]

WORDS = range(80, 401)
BYTES = 1500


def words(raw):
    """How many words a message has."""
    number = 0
    for part in email.message_from_bytes(raw).walk():
        if part.get_content_type() in ("text/plain", "text/html"):
            text = (part.get_payload(decode=True) or b"").decode("utf-8", "replace")
            number += len(re.sub(r"(?s)<style.*?</style>|<[^>]*>", " ", text).split())
    return number


def chosen(is_base):
    """The bases, of those that can be one."""
    found = []
    for line in sys.stdin:
        with open(os.path.join(corpus, line.rstrip("\n")), "rb") as message:
            raw = message.read()
        if is_base(raw):
            found.append(raw)
    return [found[i * len(found) // bases] for i in range(min(bases, len(found)))]


def write(kind, number, raws):
    directory = os.path.join(out, kind, "%02d" % number)
    os.makedirs(directory)
    for copy, raw in enumerate(raws):
        with open(os.path.join(directory, "%02d.eml" % copy), "wb") as message:
            message.write(raw)


class Evasions:
    def __init__(self):
        import evade
        self.evade, self.padding = evade, evade.sentences(sentences)
        self.kinds, self.texts = list(evade.KINDS), [evade.readable(raw) for raw in chosen(lambda raw: words(raw) in WORDS)]

    def make(self, kind):
        for number, text in enumerate(self.texts):
            write(kind, number, self.evade.make(kind, text, self.padding, copies))


class Mutations:
    def __init__(self):
        import mutate
        self.mutate, self.raws = mutate, chosen(lambda raw: len(raw) > BYTES)
        self.kinds = [*mutate.MUT, *mutate.PRESET]

    def make(self, kind):
        names = self.mutate.PRESET.get(kind, [kind])
        for number, raw in enumerate(self.raws):
            made = [self.mutate.mutate(raw, names, seed="0/%d" % copy) for copy in range(copies)]
            if all(set(names) & set(applied) for _, applied, *_ in made):
                write(kind, number, [replica for replica, *_ in made])


def make(kind):
    maker.make(kind)


maker = {"evasions": Evasions, "mutations": Mutations}[what]()
with multiprocessing.get_context("fork").Pool() as pool:
    pool.map(make, maker.kinds, chunksize=1)
print("\n".join(maker.kinds))

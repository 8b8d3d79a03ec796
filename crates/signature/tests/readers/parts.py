# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of the shown parts of each message of a directory, by the email package or by GMime, a line of JSON each."""
import html
import json
import pathlib
import re
import sys


def shown_of(kind, text):
    if kind == "html":
        text = re.sub(r"(?is)<(script|style|title)\b.*?</\1\s*>|<!--.*?-->", "", text)
        text = html.unescape(re.sub(r"(?s)<[^>]*>", " ", text))
    return text


def by_email(raw):
    import email
    import email.policy

    def walk(part):
        if part.is_multipart() and part.get_content_maintype() == "message":
            return [text for inner in part.iter_parts() for text in walk(inner)] if hasattr(part, "iter_parts") else []
        if part.is_multipart():
            all_parts = list(part.iter_parts())
            found = [walk(inner) for inner in all_parts]
            kind = part.get_content_subtype()
            if kind == "alternative":
                found = [texts for texts in found if any(text.strip() for text in texts)][-1:]
            elif kind == "related":
                found = found[:1]
            return [text for texts in found for text in texts]
        if part.get_content_maintype() != "text" or part.is_attachment():
            return []
        payload = part.get_payload(decode=True) or b""
        charset = part.get_content_charset("utf-8")
        try:
            text = payload.decode(charset, "replace")
        except LookupError:
            text = payload.decode("utf-8", "replace")
        return [shown_of(part.get_content_subtype(), text)]

    return walk(email.message_from_bytes(raw, policy=email.policy.default))


def gmime():
    import gi

    gi.require_version("GMime", "3.0")
    from gi.repository import GMime

    GMime.init()

    def walk(part):
        if isinstance(part, GMime.MessagePart):
            inner = part.get_message()
            return walk(inner.get_mime_part()) if inner and inner.get_mime_part() else []
        if isinstance(part, GMime.Multipart):
            found = [walk(part.get_part(n)) for n in range(part.get_count())]
            kind = part.get_content_type().get_media_subtype().lower()
            if kind == "alternative":
                found = [texts for texts in found if any(text.strip() for text in texts)][-1:]
            elif kind == "related":
                found = found[:1]
            return [text for texts in found for text in texts]
        if not isinstance(part, GMime.TextPart) or (part.get_disposition() or "") == "attachment":
            return []
        return [shown_of(part.get_content_type().get_media_subtype().lower(), part.get_text() or "")]

    def read(raw):
        stream = GMime.StreamMem.new_with_buffer(raw)
        message = GMime.Parser.new_with_stream(stream).construct_message(None)
        part = message.get_mime_part() if message else None
        return walk(part) if part else []

    return read


def main():
    which, directory = sys.argv[1:]
    read = gmime() if which == "gmime" else by_email
    for path in sorted(pathlib.Path(directory).glob("*.eml")):
        number = int(re.match(r"\d+", path.name)[0])
        try:
            text = " ".join(read(path.read_bytes()))
        except Exception as error:
            text = f"ERROR {error!r}"
        print(json.dumps([number, text.encode("utf-8", "replace").decode()]))


main()

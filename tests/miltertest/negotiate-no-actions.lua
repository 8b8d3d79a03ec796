-- SPDX-License-Identifier: GPL-3.0-or-later
-- An MTA that lets no header be changed, only bodies: messages pass as they are, are counted, and bulk can still be refused.
dofile("lib.lua")
local conn = connect(6, 2)
client(conn)
send(conn, {"a@box.test"}, {from, subject}, news)
check(mt.getreply(conn) == SMFIR_CONTINUE or mt.getreply(conn) == SMFIR_ACCEPT, "the message is not taken")
check(not mt.eom_check(conn, MT_HDRADD), "a header is added that cannot be")
send(conn, {"b@box.test"}, {from, subject}, news)
check(mt.getreply(conn) == SMFIR_REPLYCODE, "bulk is not refused")
mt.disconnect(conn)
mt.echo("passed")

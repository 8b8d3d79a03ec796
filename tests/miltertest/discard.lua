-- SPDX-License-Identifier: GPL-3.0-or-later
-- Bulk is accepted and thrown away.
dofile("lib.lua")
local conn = connect_to_all()
client(conn)
send(conn, {"a@box.test"}, {from, subject}, news)
check(mt.getreply(conn) == SMFIR_DISCARD, "bulk is not discarded")
mt.disconnect(conn)
mt.echo("passed")

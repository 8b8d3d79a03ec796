-- SPDX-License-Identifier: GPL-3.0-or-later
-- Bulk is held, with the header in it.
dofile("lib.lua")
local conn = connect_to_all()
client(conn)
send(conn, {"a@box.test"}, {from, subject}, news)
check_header(conn, "bulk; body=1; threshold=1; host=mx.test; sources=0; own=1")
check(mt.eom_check(conn, MT_QUARANTINE, "bulk mail (bulkmark)"), "bulk is not quarantined")
mt.disconnect(conn)
mt.echo("passed")

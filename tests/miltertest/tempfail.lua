-- SPDX-License-Identifier: GPL-3.0-or-later
-- The second copy is refused for the moment, and its retry, on another connection, with the same count.
dofile("lib.lua")
local id = {"Message-ID", "<again@sender.test>"}
local conn = connect_to_all()
client(conn)
send(conn, {"a@box.test"}, {from, subject, {"Message-ID", "<first@sender.test>"}}, news)
check_header(conn, "clean; body=1; threshold=2; host=mx.test")
for try = 1, 2 do
    send(conn, {"b@box.test"}, {from, subject, id}, news)
    check(mt.getreply(conn) == SMFIR_REPLYCODE, "bulk is not refused")
    check(mt.eom_check(conn, MT_SMTPREPLY, "451", "4.7.1",
                       "bulk mail, try again later (id QUEUEID)"),
          "the reply to try " .. try .. " is another one")
    mt.disconnect(conn)
    conn = connect_to_all()
    client(conn)
end
mt.disconnect(conn)
mt.echo("passed")

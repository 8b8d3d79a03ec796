-- SPDX-License-Identifier: GPL-3.0-or-later
-- What the scripts share. "socket" is the daemon's address, given on the command line.

-- error() ends miltertest without a word of its text, so it is said before.
function fail(what)
    mt.echo("FAILED: " .. what)
    error(what)
end

function check(condition, what)
    if not condition then fail(what) end
end

-- A call that says nothing unless something went wrong.
function done(told, what)
    if told ~= nil then fail(what .. ": " .. tostring(told)) end
end

-- Connects, with what the MTA offers; nil stands for all that miltertest knows. It confuses actions and steps
-- (2.11.0~beta2 sends them in each other's place), so both have the same bits here.
function connect(version, actions_and_steps)
    local conn = mt.connect(socket)
    check(conn ~= nil, "no connection to " .. socket)
    done(mt.negotiate(conn, version, actions_and_steps, actions_and_steps), "negotiation")
    return conn
end

function connect_to_all()
    return connect(nil, nil)
end

-- A stage of which the answer, if there is one, must be to go on.
function go_on(conn, unanswered, told, what)
    done(told, what)
    if not mt.test_option(conn, unanswered) then
        check(mt.getreply(conn) == SMFIR_CONTINUE, what .. " is not answered by continue")
    end
end

function client(conn)
    mt.macro(conn, SMFIC_CONNECT, "j", "mta.test")
    go_on(conn, SMFIP_NR_CONN, mt.conninfo(conn, "mail.sender.test", "192.0.2.25"), "connect")
end

-- A message up to its body; "fields" is a list of names and values.
function begin(conn, recipients, fields, body)
    mt.macro(conn, SMFIC_MAIL, "i", "QUEUEID")
    go_on(conn, SMFIP_NR_MAIL, mt.mailfrom(conn, "<news@sender.test>"), "MAIL")
    for _, recipient in ipairs(recipients) do
        go_on(conn, SMFIP_NR_RCPT, mt.rcptto(conn, "<" .. recipient .. ">"), "RCPT")
    end
    for _, field in ipairs(fields) do
        go_on(conn, SMFIP_NR_HDR, mt.header(conn, field[1], field[2]), "header")
    end
    if not mt.test_option(conn, SMFIP_NOEOH) then
        go_on(conn, SMFIP_NR_EOH, mt.eoh(conn), "end of header")
    end
    go_on(conn, SMFIP_NR_BODY, mt.bodystring(conn, body), "body")
end

-- A whole message.
function send(conn, recipients, fields, body)
    begin(conn, recipients, fields, body)
    done(mt.eom(conn), "end of message")
end

-- `value` is what the header says of the body; near signatures were seen in `messages`, or else as often.
function check_header(conn, value, messages)
    value = value:gsub("body=(%d+);", function(body) return "body=" .. body .. "; near=" .. (messages or body) .. ";" end)
    value = value:gsub("; threshold=(%d+)", function(threshold)
        local near = threshold == "20" and "" or "; near-threshold=20"
        return "; threshold=" .. threshold .. near
    end)
    check(mt.getreply(conn) == SMFIR_CONTINUE or mt.getreply(conn) == SMFIR_ACCEPT, "the message is not taken")
    if not mt.eom_check(conn, MT_HDRADD, "X-Bulkmark", value) then
        fail("found the header \"" .. tostring(mt.getheader(conn, "X-Bulkmark", 0)) .. "\", expected \"" .. value .. "\"")
    end
end

from = {"From", "Harbour Museum <news@sender.test>"}
subject = {"Subject", "The new hall"}
news = "The harbour museum opens its new hall on Saturday with forty model ships,\r\n" ..
       "a tide clock and a reading corner. Tickets are at the old pilot house.\r\n"

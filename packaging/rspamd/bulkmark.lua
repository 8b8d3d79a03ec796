-- SPDX-License-Identifier: GPL-3.0-or-later
-- Asks a bulkmark milter on this or another machine about each message, by its HTTP interface. docs/interfaces.md explains the setup.

if confighelp then
  rspamd_config:add_example(nil, 'bulkmark', 'Asks bulkmark how often a message was seen', [[
bulkmark {
  servers = "/run/bulkmark/http.sock"; # or "127.0.0.1:8725"
  token_file = "/etc/rspamd/bulkmark-token";
  timeout = 2s;
  count = true;
}
]])
  return
end

local lua_util = require "lua_util"
local logger = require "rspamd_logger"
local tcp = require "rspamd_tcp"
local ucl = require "ucl"
local upstream_list = require "rspamd_upstream_list"

local N = 'bulkmark'

-- A request must fit into the interface's limit for a head; recipients beyond that are not sent.
local LONGEST_QUERY = 60000
local LONGEST_ANSWER = 1024 * 1024

-- A message is looked up while rspamd judges it, and counted when its action is known: one that is refused temporarily, such as by
-- greylisting, comes again, and must not count twice.
--
-- rspamd checks a message again when a worker was lost on the way, or the mail server repeated the request. Such a message must not count
-- twice, either. Copies of a text are other messages, and do count: the queue id distinguishes them, and without one nothing is kept.
local KEPT = 1000
local KEPT_SECONDS = 60
local young, old, number, since = {}, {}, 0, 0

local settings = { servers = '/run/bulkmark/http.sock', timeout = 2.0, count = true }

local function kept(key)
  local now = os.time()
  if number >= KEPT or now - since >= KEPT_SECONDS then
    old, young, number = now - since < 2 * KEPT_SECONDS and young or {}, {}, 0
    since = now
  end
  return key and (young[key] or old[key])
end

local function keep(key, answer)
  if key then
    young[key] = answer
    number = number + 1
  end
end

-- The identity of a message here.
local function key_of(task)
  local id = task:get_queue_id()
  return id and id ~= '' and id .. ' ' .. task:get_digest() or nil
end

local function encoded(text)
  return (tostring(text):gsub('[^%w%-%._~]', function(c)
    return string.format('%%%02X', c:byte())
  end))
end

-- The envelope, in the interface's format.
local function query(task, is_counted)
  local parts, length = {}, 0
  local function add(name, value)
    if not value then return end
    local part = name .. '=' .. encoded(value)
    if length + #part < LONGEST_QUERY then
      parts[#parts + 1] = part
      length = length + #part + 1
    end
  end
  if not is_counted then add('count', 'no') end
  local ip = task:get_from_ip()
  if ip and ip:is_valid() then add('ip', ip:to_string()) end
  add('hostname', task:get_hostname())
  add('helo', task:get_helo())
  add('queue-id', task:get_queue_id())
  add('user', task:get_user())
  local from = task:get_from('smtp')
  if from and from[1] then
    add('from', from[1].addr)
  elseif task:has_from('smtp') then
    add('from', '<>')
  end
  for _, recipient in ipairs(task:get_recipients('smtp') or {}) do
    add('rcpt', recipient.addr)
  end
  return table.concat(parts, '&')
end

-- Status and body of an answer; nothing while it is incomplete.
local function whole(text)
  local _, last = text:find('\r\n\r\n', 1, true)
  if not last then return end
  local head = text:sub(1, last):lower()
  local status = tonumber(head:match('^http/1%.%d (%d%d%d)'))
  local length = tonumber(head:match('\r\ncontent%-length: *(%d+)'))
  if status and length and #text >= last + length then
    return status, text:sub(last + 1, last + length)
  end
end

local function parsed(status, body)
  local parser = ucl.parser()
  local ok, why = parser:parse_string(body)
  if not ok then return nil, 'the answer is not JSON: ' .. tostring(why) end
  local answer = parser:get_object()
  if status ~= 200 then return nil, string.format('%d: %s', status, answer.error or 'no reason') end
  if not answer.verdict then return nil, 'the answer has no verdict' end
  return answer
end

-- 1 at the threshold, 2 at ten times that and beyond. It stays at 1 if bulkmark would only mark the message.
local function weight(count, threshold, answer)
  if answer.held or threshold < 1 then return 1.0 end
  return math.min(2.0, 1.0 + math.max(0, math.log(count / threshold) / math.log(10)))
end

local function show(task, answer)
  local because = answer.because or 'it did not say why'
  local told = { answer.verdict }
  for _, name in ipairs({ 'body', 'near' }) do
    if answer[name] then told[#told + 1] = string.format('%s=%d', name, answer[name].count) end
  end
  if answer.action and answer.action ~= 'mark' then told[#told + 1] = 'action=' .. answer.action end
  if answer.held then told[#told + 1] = 'held=' .. answer.held end
  logger.infox(task, '%s: %s, since %s', N, table.concat(told, ' '), because)
  task:insert_result('BULKMARK', 1.0, told)
  if answer.verdict == 'whitelisted' then
    task:insert_result('BULKMARK_WHITELIST', 1.0, answer.whitelist or because)
  elseif answer.verdict == 'spam' and not answer.held then
    -- The score is meant for refusing, and a recipient has written to the sender of the held one.
    task:insert_result('BULKMARK_SPAM', 1.0, because)
  end
  if answer.verdict ~= 'bulk' and answer.verdict ~= 'spam' then return end
  local found = answer.verdict == 'spam'
  for name, symbol in pairs({ body = 'BULKMARK_BULK', near = 'BULKMARK_NEAR' }) do
    local count = answer[name]
    if count and count.count >= count.threshold then
      found = true
      task:insert_result(symbol, weight(count.count, count.threshold, answer), { tostring(count.count), because })
    end
  end
  -- A canary has no counts.
  if not found then task:insert_result('BULKMARK_BULK', 1.0, answer.reason or because) end
end

-- Sends the message to the interface, and calls one of these with the answer or with the error.
local function ask(task, is_counted, answered, unanswered)
  local upstream = settings.upstreams:get_upstream_round_robin()
  local done = false
  local function failed(why)
    done = true
    upstream:fail()
    logger.warnx(task, '%s: no answer of %s: %s', N, upstream:get_addr():to_string(true), why)
    unanswered(why)
  end
  local text = ''
  local function read(err, data, connection)
    if done then return end
    if err then return failed(err) end
    text = text .. tostring(data)
    local status, body = whole(text)
    if not status then
      if #text > LONGEST_ANSWER then return failed('the answer is too long') end
      connection:add_read(read)
      return
    end
    connection:close()
    local answer, why = parsed(status, body)
    if not answer then return failed(why) end
    done = true
    upstream:ok()
    answered(answer)
  end
  local content = task:get_content()
  local head = {
    'POST /v1/judge?' .. query(task, is_counted) .. ' HTTP/1.1',
    'Host: localhost', 'Connection: close', 'Content-Type: message/rfc822', 'Content-Length: ' .. #content,
  }
  if settings.token then head[#head + 1] = 'Authorization: Bearer ' .. settings.token end
  local address = upstream:get_addr()
  -- rspamd_http takes no Unix sockets.
  local asked = tcp.request({
    task = task,
    host = address:to_string(),
    port = address:get_port(),
    timeout = settings.timeout,
    data = { table.concat(head, '\r\n') .. '\r\n\r\n', content },
    callback = read,
  })
  if not asked and not done then failed('it cannot be asked') end
end

local function check(task)
  local key = key_of(task)
  local known = kept(key)
  if known then
    show(task, known)
    return
  end
  ask(task, false, function(answer)
    task:cache_set(N, { answer = answer, key = key })
    show(task, answer)
  end, function(why)
    task:insert_result('BULKMARK_FAIL', 1.0, why)
  end)
end

-- Counts the message looked up before, unless the mail server refuses it temporarily.
local function count(task)
  local asked = task:cache_get(N)
  if not asked or kept(asked.key) or task:get_metric_action() == 'soft reject' then return end
  keep(asked.key, asked.answer)
  ask(task, true, function() end, function() end)
end

local function token(path)
  local file, why = io.open(path, 'r')
  if not file then return nil, why end
  local line = file:read('*l')
  file:close()
  line = line and line:match('^%s*(%S+)%s*$')
  if not line then return nil, path .. ': expected one line with a token' end
  return line
end

local function configure()
  for name, value in pairs(rspamd_config:get_all_opt(N) or {}) do
    settings[name] = value
  end
  settings.upstreams = upstream_list.create(rspamd_config, settings.servers, 8725)
  if not settings.upstreams then
    return nil, string.format('cannot read servers = "%s"', tostring(settings.servers))
  end
  if settings.token_file then
    local why
    settings.token, why = token(settings.token_file)
    if not settings.token then return nil, why end
  end
  return true
end

local configured, why = configure()
if not configured then
  logger.errx(rspamd_config, '%s: %s', N, why)
  lua_util.disable_module(N, 'config')
  return
end

local id = rspamd_config:register_symbol({ name = 'BULKMARK_CHECK', type = 'callback', callback = check })
for name, symbol in pairs({
  BULKMARK = { 0.0, 'What bulkmark says' },
  BULKMARK_BULK = { 2.0, 'Its body was seen too often, says bulkmark' },
  BULKMARK_NEAR = { 1.5, 'What it resembles was seen too often, says bulkmark' },
  BULKMARK_SPAM = { 5.0, 'Users report it as spam' },
  BULKMARK_WHITELIST = { -1.0, 'A white list of bulkmark wants it' },
  BULKMARK_FAIL = { 0.0, 'bulkmark did not answer' },
}) do
  rspamd_config:register_symbol({ name = name, type = 'virtual', parent = id })
  rspamd_config:set_metric_symbol({ name = name, group = N, score = symbol[1], description = symbol[2], one_shot = true })
end
if settings.count then
  rspamd_config:register_symbol({ name = 'BULKMARK_COUNT', type = 'idempotent', callback = count })
end

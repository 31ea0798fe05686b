-- The pool in the store: `PoolState` over Redis keys, with the same names and results. Every script is this text followed
-- by its own. Times are milliseconds of the store; tests may pass their own time.
--
-- Invariant: after every script, no waiter remains that could be served. Messages for nodes are collected in `outbox` and
-- sent by `finish`, one message for each node; `out:<node>` keeps them until the node's next heartbeat acknowledges them.
--
-- A lease request (`wish`) is `D` (a share of the global limit), `P:<account>` (this account), `A` (any) or
-- `A:<account>,<account>` (any, these last; sorted). Equal requests of a node wait in one queue, `line:<wish>|<node>`.
-- `lines` has the queues whose first waiter may be served, by that waiter's number, and `queue` has all waiters.
local K = 'gw:{main}:'
local call = redis.call
local INF = math.huge
-- Order of accounts: unused ones by arrival come first, those being cleaned up come last.
local NEVER_GIVEN, BEHIND_ALL = -2 ^ 40, 2 ^ 50
local ALIVE, DEAF = 5000, 2000

local now = tonumber(ARGV[1])
if now == nil then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local me, incarnation = ARGV[2], ARGV[3]

local limits = call('HMGET', K .. 'lim', 'per', 'global', 'queue', 'direct', 'revision')
local per, global, queue = tonumber(limits[1]) or 1, tonumber(limits[2]) or 0, tonumber(limits[3]) or 0
local direct = tonumber(limits[4]) or 1
local revision = limits[5] or '0'
local counted = call('HMGET', K .. 'sum', 'in_use', 'waiting', 'given', 'numbered', 'arrived', 'stamped', 'direct_in_use',
  'direct_waiting')
local in_use, waiting = tonumber(counted[1]) or 0, tonumber(counted[2]) or 0
local given, numbered, arrived = tonumber(counted[3]) or 0, tonumber(counted[4]) or 0, tonumber(counted[5]) or 0
local stamped = tonumber(counted[6]) or 0
-- Active and waiting requests of callers with their own tokens.
local direct_in_use, direct_waiting = tonumber(counted[7]) or 0, tonumber(counted[8]) or 0
local epoch = call('GET', K .. 'epoch') or ''
local quiet = tonumber(call('GET', K .. 'quiet')) or 0
local outbox, notified = {}, {}
local subscribed = {}

local function int(number) return string.format('%.0f', number) end

-- A unique number, for token versions and account epochs.
local function stamp()
  stamped = stamped + 1
  return int(stamped)
end

local function notify(node, item)
  if outbox[node] == nil then
    outbox[node] = {}
    notified[#notified + 1] = node
  end
  local items = outbox[node]
  items[#items + 1] = item
end

local function channel(node) return K .. epoch .. ':' .. node end

local function listens(node)
  if subscribed[node] == nil then subscribed[node] = call('PUBSUB', 'NUMSUB', channel(node))[2] > 0 end
  return subscribed[node]
end

-- Notifies every node. Delivery is not guaranteed: heartbeats carry what must arrive.
local function broadcast(text)
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do call('PUBLISH', channel(node), '0\n' .. text) end
end

-- The last step of every script with changes.
local function finish(reply)
  call('HSET', K .. 'sum', 'in_use', in_use, 'waiting', waiting, 'given', given, 'numbered', numbered,
    'arrived', arrived, 'stamped', stamped, 'direct_in_use', direct_in_use, 'direct_waiting', direct_waiting)
  for _, node in ipairs(notified) do
    local items = outbox[node]
    local sent = call('HINCRBY', K .. 'node:' .. node, 'sent', #items)
    for first = 1, #items, 1000 do
      call('RPUSH', K .. 'out:' .. node, unpack(items, first, math.min(first + 999, #items)))
    end
    call('PUBLISH', channel(node), int(sent) .. '\n' .. table.concat(items, '\n'))
  end
  return reply
end

local function is_member(account) return call('SISMEMBER', K .. 'roster', account) == 1 end

local function is_enabled(account) return call('SISMEMBER', K .. 'disabled', account) == 0 end

-- A disabled account keeps its state without probes: its recovery waits in `parked` until it is enabled.
local function state_of(account)
  local parked = call('HGET', K .. 'parked', account)
  if parked then
    local state, parked_till = string.match(parked, '^(%S+) (%S+)$')
    return state, tonumber(parked_till)
  end
  local till = call('ZSCORE', K .. 'cool', account)
  if till then return 'cooling', tonumber(till) end
  till = call('ZSCORE', K .. 'untried', account)
  if till then return 'out', tonumber(till) end
  return 'ready', 0
end

local function used(account) return tonumber(call('HGET', K .. 'use', account)) or 0 end

local function in_rotation()
  return call('SCARD', K .. 'roster') - call('SCARD', K .. 'disabled') - call('ZCARD', K .. 'cool') -
    call('ZCARD', K .. 'untried')
end

local function line_of(wish, node) return wish .. '|' .. node end

local function place_line(line, wish)
  local head = call('ZRANGE', K .. 'line:' .. line, 0, 0, 'WITHSCORES')
  local pinned = string.sub(wish, 1, 1) == 'P' and string.sub(wish, 3)
  if head[1] == nil or (pinned and not call('ZSCORE', K .. 'spare', pinned)) then
    call('ZREM', K .. 'lines', line)
  else
    call('ZADD', K .. 'lines', head[2], line)
  end
end

-- Updates the index entries of an account and of the queues for it.
local function place(account)
  if is_member(account) and is_enabled(account) and state_of(account) == 'ready' and used(account) < per then
    local last = tonumber(call('HGET', K .. 'last', account)) or NEVER_GIVEN
    if call('HEXISTS', K .. 'cleaning', account) == 1 then last = last + BEHIND_ALL end
    call('ZADD', K .. 'spare', last, account)
  else
    call('ZREM', K .. 'spare', account)
  end
  if call('HEXISTS', K .. 'pins', account) == 1 then
    local wish = 'P:' .. account
    for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do place_line(line_of(wish, node), wish) end
  end
end

local function avoided(wish)
  local list, set = {}, {}
  for account in string.gmatch(string.sub(wish, 3), '[^,]+') do
    list[#list + 1] = account
    set[account] = true
  end
  return list, set
end

-- The account that a request would get now.
local function pick(wish)
  if wish == 'D' then return nil end
  if string.sub(wish, 1, 1) == 'P' then
    local account = string.sub(wish, 3)
    return call('ZSCORE', K .. 'spare', account) and account or nil
  end
  local list, set = avoided(wish)
  local spare = call('ZRANGE', K .. 'spare', 0, #list)
  for _, account in ipairs(spare) do
    if not set[account] then return account end
  end
  local ready = 0
  for _, account in ipairs(list) do
    if is_member(account) and is_enabled(account) and state_of(account) == 'ready' then ready = ready + 1 end
  end
  if in_rotation() > ready then return nil end
  return spare[1]
end

-- The reason why no account for a request is in rotation or recovers before the deadline; nil if there is one.
local function hopeless(wish, deadline)
  local kind = string.sub(wish, 1, 1)
  if kind == 'D' then return nil end
  if kind == 'P' then
    local account = string.sub(wish, 3)
    if not is_member(account) then return 'Unknown' end
    if not is_enabled(account) then return 'Unavailable' end
    local state, till = state_of(account)
    if state == 'out' then return 'Unavailable' end
    if state == 'cooling' and till > deadline then return 'Cooling', till end
    return nil
  end
  if in_rotation() > 0 then return nil end
  local first = call('ZRANGE', K .. 'cool', 0, 0, 'WITHSCORES')
  if first[1] == nil then return 'Unavailable' end
  if tonumber(first[2]) > deadline then return 'Cooling', tonumber(first[2]) end
  return nil
end

-- `since` and `style` are shown in the status.
local function join(node, ticket, wish, number, deadline, since, style)
  local line = line_of(wish, node)
  local facts = { int(number), int(deadline), int(since), style, wish }
  call('HSET', K .. 'tickets:' .. node, ticket, table.concat(facts, ' '))
  call('ZADD', K .. 'line:' .. line, number, ticket)
  call('ZADD', K .. 'queue', number, node .. '|' .. ticket)
  if wish == 'D' then direct_waiting = direct_waiting + 1 end
  if string.sub(wish, 1, 1) == 'P' then call('HINCRBY', K .. 'pins', string.sub(wish, 3), 1) end
  waiting = waiting + 1
  place_line(line, wish)
end

local function leave(node, ticket, wish)
  local line = line_of(wish, node)
  call('HDEL', K .. 'tickets:' .. node, ticket)
  call('ZREM', K .. 'line:' .. line, ticket)
  call('ZREM', K .. 'queue', node .. '|' .. ticket)
  if wish == 'D' then direct_waiting = direct_waiting - 1 end
  if string.sub(wish, 1, 1) == 'P' then
    local account = string.sub(wish, 3)
    if call('HINCRBY', K .. 'pins', account, -1) <= 0 then call('HDEL', K .. 'pins', account) end
  end
  waiting = waiting - 1
  place_line(line, wish)
end

-- The content of a grant: account, fence, the account's epoch and token version, and whether it is being cleaned up.
local function grant_of(account, fence)
  if account == '' then return { '', fence, '0', '0', '0', revision } end
  local facts = call('HMGET', K .. 'health:' .. account, 'epoch', 'token')
  local cleaning = call('HEXISTS', K .. 'cleaning', account) == 1 and '1' or '0'
  return { account, fence, facts[1] or '0', facts[2] or '0', cleaning, revision }
end

local function hold(node, ticket, account, fence)
  call('HSET', K .. 'leases:' .. node, ticket, int(fence) .. ' ' .. account)
  in_use = in_use + 1
  if account == '' then
    direct_in_use = direct_in_use + 1
    return
  end
  call('HINCRBY', K .. 'use', account, 1)
  local last = tonumber(call('HGET', K .. 'last', account))
  if last == nil or last < fence then call('HSET', K .. 'last', account, fence) end
  place(account)
end

local function give(node, ticket, account)
  given = given + 1
  hold(node, ticket, account or '', given)
  return grant_of(account or '', int(given))
end

-- The queue with the earliest waiter that can be served now.
local function next_line()
  local direct_allowed = direct_in_use < direct
  if call('ZCARD', K .. 'spare') == 0 then
    if not direct_allowed then return nil end
    local first, line = INF, nil
    for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
      local number = tonumber(call('ZSCORE', K .. 'lines', line_of('D', node)))
      if number and number < first and listens(node) then first, line = number, line_of('D', node) end
    end
    return line
  end
  local from = 0
  while true do
    local lines = call('ZRANGE', K .. 'lines', from, from + 15)
    for _, line in ipairs(lines) do
      local wish, node = string.match(line, '^(.*)|(.*)$')
      if listens(node) then
        local account = pick(wish)
        if account or (wish == 'D' and direct_allowed) then return line, account end
      end
    end
    if #lines < 16 then return nil end
    from = from + 16
  end
end

-- Serves waiters in order while there are free slots.
local function serve()
  if quiet > now then return end
  while waiting > 0 and in_use < global do
    local line, account = next_line()
    if line == nil then return end
    local wish, node = string.match(line, '^(.*)|(.*)$')
    local ticket = call('ZRANGE', K .. 'line:' .. line, 0, 0)[1]
    leave(node, ticket, wish)
    local grant = give(node, ticket, account)
    notify(node, 'grant ' .. ticket .. ' ' .. table.concat(grant, ' '))
  end
end

-- Refuses waiters at the head of a queue that cannot be served in time.
local function refuse(line)
  local wish, node = string.match(line, '^(.*)|(.*)$')
  while true do
    local ticket = call('ZRANGE', K .. 'line:' .. line, 0, 0)[1]
    if ticket == nil then return end
    local deadline = string.match(call('HGET', K .. 'tickets:' .. node, ticket), '^%S+ (%S+)')
    local reason, till = hopeless(wish, tonumber(deadline))
    if reason == nil then return end
    leave(node, ticket, wish)
    notify(node, 'refuse ' .. ticket .. ' ' .. reason .. ' ' .. int(till and till - now or 0))
  end
end

local function refuse_pinned(account)
  if call('HEXISTS', K .. 'pins', account) == 0 then return end
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do refuse(line_of('P:' .. account, node)) end
end

local function refuse_shared()
  if waiting == 0 or in_rotation() > 0 then return end
  for _, line in ipairs(call('ZRANGE', K .. 'lines', 0, -1)) do
    if string.sub(line, 1, 1) == 'A' then refuse(line) end
  end
end

local function set_state(account, state, till)
  call('ZREM', K .. 'cool', account)
  call('ZREM', K .. 'untried', account)
  -- An account that is disabled or enabled during a probe stays assigned to that node.
  if state ~= 'out' or till ~= INF then call('HDEL', K .. 'trying', account) end
  call('HDEL', K .. 'parked', account)
  if state ~= 'ready' and not is_enabled(account) then
    call('HSET', K .. 'parked', account, state .. ' ' .. (till == INF and 'inf' or int(till)))
  elseif state == 'cooling' then
    call('ZADD', K .. 'cool', till, account)
  elseif state == 'out' then
    call('ZADD', K .. 'untried', till, account)
  end
  place(account)
end

local function set_enabled(account, enabled)
  local state, till = state_of(account)
  if is_enabled(account) ~= enabled then
    call(enabled and 'SREM' or 'SADD', K .. 'disabled', account)
    set_state(account, state, till)
    if not enabled then refuse_pinned(account) end
  else
    place(account)
  end
end

-- Takes an account out of rotation: until `till` (`cooling`), or until a probe at `till` (`out`).
local function suspend(account, state, till)
  if not is_member(account) then return end
  set_state(account, state, till)
  refuse_pinned(account)
  refuse_shared()
  serve()
end

local function restore(account)
  if not is_member(account) or state_of(account) == 'ready' then return end
  set_state(account, 'ready', 0)
  serve()
end

-- Returns accounts to rotation whose cooling period has ended.
local function warm()
  while true do
    local first = call('ZRANGE', K .. 'cool', 0, 0, 'WITHSCORES')
    if first[1] == nil or tonumber(first[2]) > now then return end
    set_state(first[1], 'ready', 0)
  end
end

-- Assigns to this node the accounts that are due for a probe. They are not due again until it reports.
local function due()
  local accounts = call('ZRANGEBYSCORE', K .. 'untried', '-inf', now)
  for _, account in ipairs(accounts) do
    call('ZADD', K .. 'untried', INF, account)
    call('HSET', K .. 'trying', account, me)
  end
  return accounts
end

local function recover()
  warm()
  local accounts = due()
  serve()
  return accounts
end

-- The end of clean-ups, leases, waiters and nodes; and the start of every script.
local function set_cleaning(account, node)
  if node then call('HSET', K .. 'cleaning', account, node) else call('HDEL', K .. 'cleaning', account) end
  place(account)
end

-- Forgets a removed account without leases.
local function forget(account)
  call('HDEL', K .. 'last', account)
  call('HDEL', K .. 'cleaning', account)
end

-- Ends a lease or a waiter. Returns its kind and account. Idempotent.
local function close(node, ticket)
  local waits = call('HGET', K .. 'tickets:' .. node, ticket)
  if waits then
    leave(node, ticket, string.match(waits, '(%S+)$'))
    return 'waiting'
  end
  local held = call('HGET', K .. 'leases:' .. node, ticket)
  if not held then return 'unknown' end
  local account = string.match(held, '^%S+ (.*)$')
  call('HDEL', K .. 'leases:' .. node, ticket)
  in_use = in_use - 1
  if account == '' then
    direct_in_use = direct_in_use - 1
  else
    if call('HINCRBY', K .. 'use', account, -1) <= 0 then call('HDEL', K .. 'use', account) end
    if is_member(account) then place(account) elseif used(account) == 0 then forget(account) end
  end
  return 'granted', account
end

-- Removes an active request of a business key (`keys.lua`).
local function let_key_go(key)
  if call('HINCRBY', K .. 'usage:use', key, -1) <= 0 then call('HDEL', K .. 'usage:use', key) end
end

-- Drops a node with its leases, waiters, probes, clean-ups and logins.
local function drop(node)
  for _, kind in ipairs({ 'tickets:', 'leases:' }) do
    for _, ticket in ipairs(call('HKEYS', K .. kind .. node)) do close(node, ticket) end
  end
  local trying = call('HGETALL', K .. 'trying')
  for i = 1, #trying, 2 do
    if trying[i + 1] == node then
      call('HDEL', K .. 'trying', trying[i])
      call('ZADD', K .. 'untried', 'XX', now, trying[i])
      if call('HEXISTS', K .. 'parked', trying[i]) == 1 then call('HSET', K .. 'parked', trying[i], 'out ' .. int(now)) end
    end
  end
  local cleaning = call('HGETALL', K .. 'cleaning')
  for i = 1, #cleaning, 2 do
    if cleaning[i + 1] == node then set_cleaning(cleaning[i], nil) end
  end
  for _, account in ipairs(call('SMEMBERS', K .. 'logins:' .. node)) do call('DEL', K .. 'login:' .. account) end
  -- The usage of its requests stays counted, because the upstream may have been called.
  for _, held in ipairs(call('HVALS', K .. 'usage:adm:' .. node)) do let_key_go(string.match(held, '^%S+')) end
  call('DEL', K .. 'usage:adm:' .. node, K .. 'usage:held:' .. node)
  call('DEL', K .. 'logins:' .. node, K .. 'out:' .. node, K .. 'node:' .. node)
  call('ZREM', K .. 'nodes', node)
  outbox[node] = nil
  for i = #notified, 1, -1 do
    if notified[i] == node then table.remove(notified, i) end
  end
end

-- The first step of every script. Drops nodes without a heartbeat for 5 s, and nodes without a subscription after 2 s.
local function reap()
  for _, node in ipairs(call('ZRANGEBYSCORE', K .. 'nodes', '-inf', now + ALIVE - DEAF)) do
    if tonumber(call('ZSCORE', K .. 'nodes', node)) <= now or not listens(node) then drop(node) end
  end
  warm()
  if quiet > 0 and quiet <= now then call('DEL', K .. 'quiet') end
  serve()
end

local function is_attached() return call('HGET', K .. 'node:' .. me, 'incarnation') == incarnation end

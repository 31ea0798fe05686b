-- The end of clean-ups, leases, waiters and nodes; and the start of every script.
local function set_cleaning(p, account, node)
  changed_account(account).cleaning = node
  if node then call('SADD', K .. 'tasks:' .. node, account) end
  place(p, account)
end

-- Forgets a removed account without leases.
local function forget(account)
  local a = changed_account(account)
  for field in pairs(a) do a[field] = nil end
end

-- Ends a lease or a waiter. Returns its kind, account and pool. Idempotent.
local function close(node, ticket)
  local record = record_of(node, ticket)
  if record then
    leave_all(record)
    return 'waiting'
  end
  local p, lease = lease_of(node, ticket)
  if p == nil then return 'unknown' end
  local account = lease.account
  call('HDEL', K .. 'leases:' .. node, ticket)
  p.in_use, p.changed = p.in_use - 1, true
  if account == '' then
    p.direct_in_use = p.direct_in_use - 1
  else
    local a = changed_account(account)
    a.use = a.use - 1
    if a.use == 0 then call('SREM', p.k .. 'used', account) end
    if a.member then place(p, account) elseif a.use == 0 then forget(account) end
  end
  if p.probe and p.probe == node .. '|' .. ticket then
    p.probe, p.changed = nil, true
    refresh(p)
  end
  forget_pool(p)
  return 'granted', account, p
end

-- Removes an active request of a business key (`keys.lua`).
local function let_key_go(key)
  if call('HINCRBY', K .. 'usage:use', key, -1) <= 0 then call('HDEL', K .. 'usage:use', key) end
end

-- Ends all claims of a node, or those that it does not have: waiters, then leases.
local function close_all(node, has)
  for _, kind in ipairs({ 'tickets:', 'leases:' }) do
    for _, ticket in ipairs(call('HKEYS', K .. kind .. node)) do
      if not has[ticket] then close(node, ticket) end
    end
  end
end

-- How many leases and waiters a node has.
local function claims_of(node) return call('HLEN', K .. 'leases:' .. node), call('HLEN', K .. 'tickets:' .. node) end

-- Nothing is granted before a time.
local function be_quiet(till)
  quiet = till
  call('SET', K .. 'quiet', int(quiet))
end

-- A node has brought back what it holds, or is gone. The last one ends the quiet period.
local function has_returned(node)
  if quiet <= now or call('SREM', K .. 'returning', node) == 0 or call('EXISTS', K .. 'returning') == 1 then return end
  local back = tonumber(call('HGET', K .. 'lim', 'back')) or now
  be_quiet(math.min(quiet, math.max(now, back + RETURN)))
end

-- Drops a node with its leases, waiters, probes, clean-ups and logins.
local function drop(node)
  close_all(node, {})
  for _, account in ipairs(call('SMEMBERS', K .. 'tasks:' .. node)) do
    local a = account_of(account)
    if a.trying == node then set_state(pool_of(account), account, 'out', now) end
    if a.cleaning == node then set_cleaning(pool_of(account), account, nil) end
  end
  for _, account in ipairs(call('SMEMBERS', K .. 'logins:' .. node)) do call('DEL', K .. 'login:' .. account) end
  -- The usage of its requests stays counted, because the upstream may have been called.
  for _, held in ipairs(call('HVALS', K .. 'usage:adm:' .. node)) do let_key_go(cjson.decode(held).key) end
  call('DEL', K .. 'usage:adm:' .. node, K .. 'usage:held:' .. node)
  call('DEL', K .. 'tasks:' .. node, K .. 'logins:' .. node, K .. 'out:' .. node, K .. 'node:' .. node)
  call('ZREM', K .. 'nodes', node)
  has_returned(node)
  outbox[node] = nil
  for i = #notified, 1, -1 do
    if notified[i] == node then table.remove(notified, i) end
  end
end

-- The first step of every script. Drops nodes without a heartbeat for 5 s, and nodes without a subscription after 2 s, unless
-- they are returning.
local function reap()
  for _, node in ipairs(call('ZRANGEBYSCORE', K .. 'nodes', '-inf', now + ALIVE - DEAF)) do
    if tonumber(call('ZSCORE', K .. 'nodes', node)) <= now or (quiet <= now and not listens(node)) then drop(node) end
  end
  warm()
  if quiet > 0 and quiet <= now then
    call('DEL', K .. 'quiet')
    -- Requests that arrived meanwhile may have no account to wait for.
    for _, p in ipairs(revision == '0' and {} or pools) do
      refuse_shared(p)
      refuse_others(p)
    end
  end
  for _, p in ipairs(pools) do
    if p.probe and not call('ZSCORE', K .. 'nodes', string.match(p.probe, '^(.*)|')) then
      p.probe, p.changed = nil, true
    end
    if refresh(p) then serve() end
  end
  serve()
end

-- The run id of the server: another one has other data, which may lack the latest writes.
local function run_id() return string.match(call('INFO', 'server'), 'run_id:(%w+)') or '' end

local function is_attached() return call('HGET', K .. 'node:' .. me, 'incarnation') == incarnation end

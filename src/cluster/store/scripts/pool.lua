-- The pools and their accounts over the state of `state.lua`, and what nodes are sent.

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

-- Notifies another node, all others (empty) or every node (`*`), and returns these. Delivery is not guaranteed: heartbeats carry what must
-- arrive.
local function tell(to, text)
  local told = {}
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
    if to == '*' or (node ~= me and (to == '' or to == node)) then
      told[#told + 1] = node
      call('PUBLISH', channel(node), '0\n' .. text)
    end
  end
  return told
end

-- The record of an account; one of its own for a name that the store does not know.
local account_records, changed_accounts = {}, {}
local function account_of(name)
  if account_records[name] == nil then
    local text = call('HGET', K .. 'accounts', name)
    account_records[name] = setmetatable(text and cjson.decode(text) or {}, { __index = NEW_ACCOUNT })
  end
  return account_records[name]
end

-- The record of an account, which is saved with what is changed of it.
local function changed_account(name)
  changed_accounts[name] = true
  return account_of(name)
end

local function pool_of(account) return by_name[account_of(account).pool] or nowhere end

-- The pool of a name; nil if the configuration has none.
local function configured(name)
  local p = by_name[name]
  return p and not p.leaving and p or nil
end

local function all_in_use()
  local sum = 0
  for _, p in ipairs(pools) do sum = sum + p.in_use end
  return sum
end

-- Puts a pool behind all others.
local function append_pool(p)
  p.order = #pools == 0 and 1 or pools[#pools].order + 1
  pools[#pools + 1], by_name[p.name], p.changed = p, p, true
end

local function remove_pool(p)
  for i, other in ipairs(pools) do
    if other == p then table.remove(pools, i) end
  end
end

-- The pool of a name; a new one of a name that the store does not know yet: its nodes are returning to an empty store.
local function pool_named(name)
  if by_name[name] == nil then append_pool(make_pool(name)) end
  return by_name[name]
end

local function touch(record)
  if not record.touched then
    record.touched = true
    touched[#touched + 1] = record
  end
end

-- The record of a waiter; nil without one.
local function record_of(node, ticket)
  local id = node .. '|' .. ticket
  if records[id] == nil then
    local text = call('HGET', K .. 'tickets:' .. node, ticket)
    local record = text and cjson.decode(text)
    if record then record.id, record.node, record.ticket = id, node, ticket end
    records[id] = record
  end
  local record = records[id]
  return record and not record.ended and record or nil
end

local function save_record(record)
  local place = K .. 'tickets:' .. record.node
  if record.ended then
    call('HDEL', place, record.ticket)
    return
  end
  call('HSET', place, record.ticket, cjson.encode({
    number = record.number, deadline = record.deadline, since = record.since, style = record.style, spread = record.spread,
    preferred = record.preferred, holding = record.holding, targets = record.targets, lost = record.lost
  }))
end

-- Saves what has changed of waiters, accounts and pools.
local function save()
  for _, record in ipairs(touched) do
    save_record(record)
    record.touched = false
  end
  touched = {}
  for name in pairs(changed_accounts) do
    local account = account_records[name]
    if next(account) then call('HSET', K .. 'accounts', name, cjson.encode(account)) else call('HDEL', K .. 'accounts', name) end
  end
  changed_accounts = {}
  for _, p in ipairs(pools) do
    if p.changed then
      p.changed = nil
      call('HSET', K .. 'pools', p.name, cjson.encode(p))
    end
  end
end

-- The last step of every script with changes.
local function finish(reply)
  call('HSET', K .. 'sum', 'given', given, 'numbered', numbered, 'arrived', arrived, 'stamped', stamped, 'at', int(now))
  save()
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

-- The state of an account, and until when: at a budget it cools until the window ends. A disabled one keeps its state without probes.
local function state_of(account)
  local a = account_of(account)
  local till = tonumber(a.till)
  if budgeted and a.spent > 0 and a.state ~= 'out' then return 'cooling', math.max(a.spent, till) end
  return a.state, till
end

local function in_rotation(p)
  return call('SCARD', p.k .. 'roster') - p.disabled - call('ZCARD', p.k .. 'cool') - call('ZCARD', p.k .. 'untried')
end

-- The order in which a pool gives its accounts with a free slot: `choice.ts` over the records of accounts. Times keep all their digits as text.
local STEP, MOST, UNKNOWN, PLACES, TOLERANCE = 2 ^ -40, 1023, 2 ^ 43, 2 ^ 20, 1e-9

local function exact(number) return string.format('%.17g', number) end

-- The earliest reset of a window of the whole account that has something left; nil without any.
local function reset_of(account)
  local earliest
  for _, window in ipairs(windows_of(account)) do
    if not window.kind and window.status ~= 'exhausted' then earliest = math.min(earliest or INF, window.resets) end
  end
  return earliest
end

local function score_of(p, account)
  local a = account_of(account)
  if p.choose == 'rotate' then return a.last end
  if p.choose == 'fill_first' then return a.order - a.priority * PLACES end
  if p.choose == 'weighted' then return tonumber(a.start) + 1 / a.weight end
  local reset = reset_of(account)
  return reset and reset + math.min(a.order, MOST) / 2048 or a.last - UNKNOWN
end

-- Whether the share of an account permits the next grant.
local function is_due(p, account)
  return tonumber(account_of(account).start) < tonumber(p.at) + 1 / p.sum - TOLERANCE
end

-- An account is back in rotation.
local function enters(p, account)
  if p.choose ~= 'weighted' then return end
  local a = changed_account(account)
  a.start = exact(math.max(tonumber(a.start), tonumber(p.at)))
end

-- Counts a grant.
local function count_given(p, account)
  if p.choose ~= 'weighted' then return end
  local a = changed_account(account)
  local start, at = tonumber(a.start), tonumber(p.at)
  if not is_due(p, account) then at = math.max(at, start) end
  at = at + 1 / p.sum
  p.at, p.changed = exact(at), true
  a.start = exact(math.max(start + 1 / a.weight, at - 1 / a.weight))
end

local function line_of(lease_request, node) return lease_request .. '|' .. node end

-- The lease request and the node of a line.
local function parts_of(line) return string.match(line, '^(.*)|(.*)$') end

-- Updates the index entries of a line.
local function place_line(p, line)
  local head = call('ZRANGE', p.k .. 'line:' .. line, 0, 0, 'WITHSCORES')
  if not head[1] then
    call('ZREM', p.k .. 'lines', line)
    call('ZREM', p.k .. 'blocked', line)
  elseif not call('ZSCORE', p.k .. 'blocked', line) then
    call('ZADD', p.k .. 'lines', head[2], line)
  end
end

-- Lets a line be looked at again that nothing has suited.
local function release_line(p, line)
  call('ZREM', p.k .. 'blocked', line)
  place_line(p, line)
end

-- Lets the lines be looked at again that nothing has suited: all, or those that an account suits now; others, when it suits them.
local function unblock(p, account)
  for _, line in ipairs(call('ZRANGE', p.k .. 'blocked', 0, -1)) do
    local want = want_of(parts_of(line))
    -- An account that is avoided serves once no other one does.
    local is_meant = not account or #want.list > 0
    local at = is_meant and 0 or (want.account or account) == account and suits_at(p, account, want) or INF
    if at == 0 then release_line(p, line) else call('ZADD', p.k .. 'blocked', 'LT', at, line) end
  end
end

-- Updates the index entries of an account.
local function place(p, account)
  local a = account_of(account)
  if a.member and not a.disabled and state_of(account) == 'ready' and a.use < p.per then
    local score = score_of(p, account)
    if a.cleaning then score = score + BEHIND_ALL end
    if call('ZADD', p.k .. 'spare', score, account) == 1 then unblock(p, account) end
  else
    call('ZREM', p.k .. 'spare', account)
  end
end

-- The first account with a free slot that suits a request and for which `is_wanted` holds; nil without one.
local function first_spare(p, want, is_wanted)
  local from = 0
  repeat
    local size = from + 1
    local some = call('ZRANGE', p.k .. 'spare', from, from + size - 1)
    for _, account in ipairs(some) do
      if suits_at(p, account, want) == 0 and is_wanted(account) then return account end
    end
    from = from + size
  until #some < size
end

-- Whether `f` holds for a member of a pool. Looks at no more of them than it needs, some at a time.
local function some_member(p, f)
  local cursor = '0'
  repeat
    local found = call('SSCAN', p.k .. 'roster', cursor, 'COUNT', 64)
    for _, account in ipairs(found[2]) do
      if f(account) then return true end
    end
    cursor = found[1]
  until cursor == '0'
  return false
end

-- When an account is in rotation and suits a request: 0 for now; nil if that is unknown.
local function serves_at(p, account, want)
  local state, till = state_of(account)
  if state == 'out' or account_of(account).disabled then return nil end
  local at = math.max(state == 'ready' and 0 or till, suits_at(p, account, want))
  return at < INF and at or nil
end

-- When an account of a pool is in rotation and suits a request: 0 for now; nil if that is unknown. Looks at each account if they differ.
local function back_at(p, want)
  if want.account then return serves_at(p, want.account, want) end
  if not is_picky(p, want) then
    local back = in_rotation(p) > 0 and 0 or tonumber(call('ZRANGE', p.k .. 'cool', 0, 0, 'WITHSCORES')[2])
    return back and math.max(back, suits_at(p, '', want))
  end
  if first_spare(p, want, function() return true end) then return 0 end
  local back
  some_member(p, function(account)
    local at = serves_at(p, account, want)
    back = at and math.min(back or INF, at) or back
    return at == 0
  end)
  return back
end

-- Whether an account is in rotation that a request does not avoid.
local function others_in_rotation(p, want)
  local avoided = 0
  for _, account in ipairs(want.list) do
    local a = account_of(account)
    if a.member and a.pool == p.name and not a.disabled and state_of(account) == 'ready' then avoided = avoided + 1 end
  end
  if not is_picky(p, want) then return in_rotation(p) > avoided and suits_at(p, '', want) == 0 end
  return some_member(p, function(account) return not want.avoids[account] and serves_at(p, account, want) == 0 end)
end

-- The account that a request would get now: the preferred one if it is free.
local function pick(p, want, preferred)
  if want.kind == 'D' then return nil end
  local function is_free(account) return call('ZSCORE', p.k .. 'spare', account) and suits_at(p, account, want) == 0 end
  if want.account then return is_free(want.account) and want.account or nil end
  if preferred and not want.avoids[preferred] and is_free(preferred) then return preferred end
  local function is_wanted(account) return not want.avoids[account] end
  local function is_due_and_wanted(account)
    return not account_of(account).cleaning and is_due(p, account) and is_wanted(account)
  end
  local best = p.choose == 'weighted' and first_spare(p, want, is_due_and_wanted) or first_spare(p, want, is_wanted)
  if best or #want.list == 0 or others_in_rotation(p, want) then return best end
  return first_spare(p, want, function() return true end)
end

-- Of conversations that a request may belong to, the first that is warm: until when, and its pool and account.
local function sticky_of(keys)
  for key in string.gmatch(keys or '', '%S+') do
    local till, pool_name, account = string.match(call('HGET', K .. 'sticky', key) or '', '^(%S+) (%S+) (%S+)$')
    if till and now < tonumber(till) then return till, pool_name, account end
  end
  return nil
end

-- Keeps a word about a conversation, of the conversations that were used last.
local function keep_conversation(name, conversation, word)
  local words, used = K .. name, K .. name .. ':used'
  call('HSET', words, conversation, word)
  call('ZADD', used, now, conversation)
  if call('ZCARD', used) > CONVERSATIONS then call('HDEL', words, call('ZPOPMIN', used)[1]) end
  call('PEXPIRE', words, STICKY)
  call('PEXPIRE', used, STICKY)
end

-- Whether a pool has a slot for a request now, and its account.
local function can_serve(p, lease_request, preferred)
  local want = want_of(lease_request)
  if not p.open or p.in_use >= p.global then return false end
  if want.kind == 'D' then return p.direct_in_use < p.direct end
  if p.spent > 0 then return false end
  local account = pick(p, want, preferred)
  return account ~= nil, account
end

local function has_place(p, lease_request)
  return p.waiting < p.queue and (lease_request ~= 'D' or p.direct_waiting < math.floor(p.queue / 2))
end

-- The refusal of a request for which no account is in rotation or recovers before the deadline: the reason, and until when it is so if that
-- is known. Nil if there is an account.
local function hopeless(p, lease_request, deadline)
  local want = want_of(lease_request)
  local pinned = want.account and account_of(want.account)
  if pinned and not (pinned.member and pinned.pool == p.name) then return { reason = 'Unknown' } end
  if not p.open then return { reason = 'Unavailable' } end
  if want.kind == 'D' then return nil end
  local back = back_at(p, want)
  if not back then return { reason = 'Unavailable' } end
  back = math.max(back, p.spent)
  return back > math.max(0, deadline) and { reason = 'Cooling', till = back } or nil
end

-- Puts a waiter into its line, or takes it out.
local function stand(p, node, ticket, lease_request, number)
  call('ZADD', p.k .. 'line:' .. line_of(lease_request, node), number, ticket)
  place_line(p, line_of(lease_request, node))
end

local function step_out(p, node, ticket, lease_request)
  call('ZREM', p.k .. 'line:' .. line_of(lease_request, node), ticket)
  place_line(p, line_of(lease_request, node))
end

-- Counts a place in a pool's queue.
local function count_place(p, lease_request, by)
  if lease_request == 'D' then p.direct_waiting = p.direct_waiting + by end
  p.waiting, p.changed = p.waiting + by, true
end

-- The windows of an account's quota: their keys and what they say (`domain/quota.ts`), with `;` between. Empty without any.
local function quota_of(account) return table.concat(call('HGETALL', K .. 'quota:' .. account), ';') end

-- Learns windows of an account's quota. Of two words about one the later counts, and of more than the most the oldest goes that has
-- something left. `serve` must follow.
local function learn_quota(account, text)
  local p, key = pool_of(account), K .. 'quota:' .. account
  if not account_of(account).member then return end
  local seen_at = {}
  for _, window in ipairs(windows_of(account)) do seen_at[window.key] = window.seen end
  for name, window in string.gmatch(text, '([^;]+);([^;]+)') do
    local seen = tonumber(string.match(window, '([^,]*),[^,]*$'))
    if (seen_at[name] or 0) <= seen then call('HSET', key, name, window) end
  end
  note_windows(p, account)
  while #windows_of(account) > WINDOWS do
    local oldest, least = nil, INF
    for _, window in ipairs(windows_of(account)) do
      local seen = window.status == 'exhausted' and window.seen + BEHIND_ALL or window.seen
      if seen < least then oldest, least = window.key, seen end
    end
    call('HDEL', key, oldest)
    note_windows(p, account)
  end
  call('PEXPIRE', key, QUOTA)
  if p.choose == 'spend_soonest_reset' then place(p, account) end
  unblock(p, account)
end

-- The lease of a ticket with its pool; nil without one.
local function lease_of(node, ticket)
  local held = call('HGET', K .. 'leases:' .. node, ticket)
  if not held then return nil end
  local lease = cjson.decode(held)
  return by_name[lease.pool], lease
end

-- The content of a grant: account, fence, the account's epoch and token version, whether it is being cleaned up, the revision, the pool,
-- its coolings, whether this lease probes it, the windows of the account's quota, and the number of the model that it serves.
local function grant_of(p, node, ticket, lease)
  local account = lease.account
  local a = account_of(account)
  return {
    account, int(lease.fence), a.epoch, a.token, a.cleaning and '1' or '0', revision, p.name, int(p.coolings),
    p.probe == node .. '|' .. ticket and '1' or '0', account == '' and '' or quota_of(account), int(lease.model)
  }
end

local function waiting_reply(record) return { 'waiting', int(record.number), record.holding and '1' or '0' } end

-- The reply about a ticket of this node that has a lease, or that waits; nil for another one.
local function claim_of(ticket)
  local p, lease = lease_of(me, ticket)
  if p then return { 'granted', unpack(grant_of(p, me, ticket, lease)) } end
  local record = record_of(me, ticket)
  return record and waiting_reply(record)
end

local function hold(p, node, ticket, lease)
  local account = lease.account
  lease.pool = p.name
  call('HSET', K .. 'leases:' .. node, ticket, cjson.encode(lease))
  p.in_use, p.changed = p.in_use + 1, true
  if account == '' then
    p.direct_in_use = p.direct_in_use + 1
    return
  end
  local a = changed_account(account)
  a.use, a.last = a.use + 1, math.max(a.last, lease.fence)
  call('SADD', p.k .. 'used', account)
  place(p, account)
end

-- Sets a line aside until an account may suit it that does not now. Looks at each account if they differ.
local function block(p, line)
  local want, first = want_of(parts_of(line)), INF
  local accounts = want.account and { want.account } or is_picky(p, want) and call('SMEMBERS', p.k .. 'roster') or { '' }
  for _, account in ipairs(accounts) do
    local at = suits_at(p, account, want)
    if at > 0 then first = math.min(first, at) end
  end
  call('ZREM', p.k .. 'lines', line)
  call('ZADD', p.k .. 'blocked', first, line)
end

-- The line of a pool with the earliest waiter that can be served now, the account, and the waiter's number.
local function next_line(p)
  local direct_allowed = p.direct_in_use < p.direct
  if p.spent > 0 or call('ZCARD', p.k .. 'spare') == 0 then
    if not direct_allowed then return nil end
    local first, line = INF, nil
    for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
      local number = tonumber(call('ZSCORE', p.k .. 'lines', line_of('D', node)))
      if number and number < first and listens(node) then first, line = number, line_of('D', node) end
    end
    return line, nil, first
  end
  local from, unsuited, found = 0, {}, {}
  repeat
    local lines = call('ZRANGE', p.k .. 'lines', from, from + 15, 'WITHSCORES')
    for i = 1, #lines, 2 do
      local lease_request, node = parts_of(lines[i])
      local want = want_of(lease_request)
      if not found[1] and listens(node) then
        local account = pick(p, want)
        if account or (want.kind == 'D' and direct_allowed) then
          found = { lines[i], account, tonumber(lines[i + 1]) }
        elseif want.has_needs or want.account then
          unsuited[#unsuited + 1] = lines[i]
        end
      end
    end
    from = from + 16
  until found[1] or #lines < 32
  for _, line in ipairs(unsuited) do block(p, line) end
  return found[1], found[2], found[3]
end

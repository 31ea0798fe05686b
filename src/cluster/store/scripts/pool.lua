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

local function pool_of(account) return by_name[call('HGET', K .. 'home', account)] or nowhere end

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
    holding = record.holding, targets = record.targets, lost = record.lost, lost_till = record.lost_till
  }))
end

-- Saves what has changed of records and pools.
local function save()
  for _, record in ipairs(touched) do
    save_record(record)
    record.touched = false
  end
  touched = {}
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

local function is_member(p, account) return call('SISMEMBER', p.k .. 'roster', account) == 1 end

local function is_enabled(p, account) return call('SISMEMBER', p.k .. 'disabled', account) == 0 end

local function health_key(account) return K .. 'health:' .. account end

-- The state of an account apart from its budgets, and until when. A disabled one keeps its state without probes.
local function health_of(account)
  local state, till = unpack(call('HMGET', health_key(account), 'state', 'till'))
  return state or 'ready', tonumber(till) or 0
end

-- Until when a budget of an account is used up; 0 while all have something left.
local function spent_of(account) return tonumber(call('HGET', health_key(account), 'spent')) or 0 end

-- The state of an account: at a budget it cools until the window ends.
local function state_of(account)
  local state, till = health_of(account)
  local spent = budgeted and state ~= 'out' and spent_of(account) or 0
  if spent > 0 then return 'cooling', math.max(spent, till) end
  return state, till
end

local function used(p, account) return tonumber(call('HGET', p.k .. 'use', account)) or 0 end

local function in_rotation(p)
  return call('SCARD', p.k .. 'roster') - call('SCARD', p.k .. 'disabled') - call('ZCARD', p.k .. 'cool') -
    call('ZCARD', p.k .. 'untried')
end

-- The order in which a pool gives its accounts with a free slot: `choice.ts` over Redis keys. `ranks` has the place, priority and weight of
-- each account, and `starts` when its next grant may start. Times keep all their digits as text.
local STEP, MOST, UNKNOWN, PLACES, TOLERANCE = 2 ^ -40, 1023, 2 ^ 43, 2 ^ 20, 1e-9

local function exact(number) return string.format('%.17g', number) end

local function rank_of(p, account)
  local order, priority, weight = string.match(call('HGET', p.k .. 'ranks', account) or '0 0 1', '^(%S+) (%S+) (%S+)$')
  return tonumber(order), tonumber(priority), tonumber(weight)
end

local function start_of(p, account) return tonumber(call('HGET', p.k .. 'starts', account)) or 0 end

-- The earliest reset of a window of the whole account that has something left; nil without any.
local function reset_of(account)
  local earliest
  local all = call('HGETALL', K .. 'quota:' .. account)
  for i = 1, #all, 2 do
    local resets, status = string.match(all[i + 1], '^[^,]*,[^,]*,[^,]*,([^,]*),([^,]*),')
    if string.sub(all[i], -1) == ',' and status ~= 'exhausted' then earliest = math.min(earliest or INF, tonumber(resets)) end
  end
  return earliest
end

local function score_of(p, account)
  local last = tonumber(call('HGET', p.k .. 'last', account)) or NEVER_GIVEN
  if p.choose == 'rotate' then return last end
  local order, priority, weight = rank_of(p, account)
  if p.choose == 'fill_first' then return order - priority * PLACES end
  if p.choose == 'weighted' then return start_of(p, account) + 1 / weight end
  local reset = reset_of(account)
  return reset and reset + math.min(order, MOST) / 2048 or last - UNKNOWN
end

-- Whether the share of an account permits the next grant.
local function is_due(p, account)
  return start_of(p, account) < tonumber(p.at) + 1 / p.sum - TOLERANCE
end

-- An account is back in rotation.
local function enters(p, account)
  if p.choose ~= 'weighted' then return end
  call('HSET', p.k .. 'starts', account, exact(math.max(start_of(p, account), tonumber(p.at))))
end

-- Counts a grant.
local function count_given(p, account)
  if p.choose ~= 'weighted' then return end
  local _, _, weight = rank_of(p, account)
  local start, at = start_of(p, account), tonumber(p.at)
  if not is_due(p, account) then at = math.max(at, start) end
  at = at + 1 / p.sum
  p.at, p.changed = exact(at), true
  call('HSET', p.k .. 'starts', account, exact(math.max(start + 1 / weight, at - 1 / weight)))
end

local function line_of(lease_request, node) return lease_request .. '|' .. node end

local function place_line(p, line, lease_request)
  local head = call('ZRANGE', p.k .. 'line:' .. line, 0, 0, 'WITHSCORES')
  local pinned = string.sub(lease_request, 1, 1) == 'P' and string.sub(lease_request, 3)
  if head[1] == nil or (pinned and not call('ZSCORE', p.k .. 'spare', pinned)) then
    call('ZREM', p.k .. 'lines', line)
  else
    call('ZADD', p.k .. 'lines', head[2], line)
  end
end

-- Updates the index entries of an account and of the queues for it.
local function place(p, account)
  if is_member(p, account) and is_enabled(p, account) and state_of(account) == 'ready' and used(p, account) < p.per then
    local score = score_of(p, account)
    if call('HEXISTS', p.k .. 'cleaning', account) == 1 then score = score + BEHIND_ALL end
    call('ZADD', p.k .. 'spare', score, account)
  else
    call('ZREM', p.k .. 'spare', account)
  end
  if call('HEXISTS', p.k .. 'pins', account) == 1 then
    local lease_request = 'P:' .. account
    for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do place_line(p, line_of(lease_request, node), lease_request) end
  end
end

local function avoided(lease_request)
  local list, set = {}, {}
  for account in string.gmatch(string.sub(lease_request, 3), '[^,]+') do
    list[#list + 1] = account
    set[account] = true
  end
  return list, set
end

-- The account that a request would get now.
local function pick(p, lease_request)
  if lease_request == 'D' then return nil end
  if string.sub(lease_request, 1, 1) == 'P' then
    local account = string.sub(lease_request, 3)
    return call('ZSCORE', p.k .. 'spare', account) and account or nil
  end
  local list, set = avoided(lease_request)
  if preferred and not set[preferred] and call('ZSCORE', p.k .. 'spare', preferred) then return preferred end
  if p.choose == 'weighted' then
    local from = 0
    repeat
      local some = call('ZRANGE', p.k .. 'spare', from, from + 15)
      for _, account in ipairs(some) do
        local is_cleaning = call('HEXISTS', p.k .. 'cleaning', account) == 1
        if not set[account] and not is_cleaning and is_due(p, account) then return account end
      end
      from = from + 16
    until #some < 16
  end
  local spare = call('ZRANGE', p.k .. 'spare', 0, #list)
  for _, account in ipairs(spare) do
    if not set[account] then return account end
  end
  local ready = 0
  for _, account in ipairs(list) do
    if is_member(p, account) and is_enabled(p, account) and state_of(account) == 'ready' then ready = ready + 1 end
  end
  if in_rotation(p) > ready then return nil end
  return spare[1]
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
local function can_serve(p, lease_request)
  if not p.open or p.in_use >= p.global then return false end
  if lease_request == 'D' then return p.direct_in_use < p.direct end
  if p.spent > 0 then return false end
  local account = pick(p, lease_request)
  return account ~= nil, account
end

local function has_place(p, lease_request)
  return p.waiting < p.queue and (lease_request ~= 'D' or p.direct_waiting < math.floor(p.queue / 2))
end

-- The reason why no account for a request is in rotation or recovers before the deadline; nil if there is one.
local function hopeless(p, lease_request, deadline)
  local kind = string.sub(lease_request, 1, 1)
  if kind == 'P' and not is_member(p, string.sub(lease_request, 3)) then return 'Unknown' end
  if not p.open then return 'Unavailable' end
  if kind == 'D' then return nil end
  local back = 0
  if kind == 'P' then
    local account = string.sub(lease_request, 3)
    local state, till = state_of(account)
    if state == 'out' or not is_enabled(p, account) then return 'Unavailable' end
    if state == 'cooling' then back = till end
  elseif in_rotation(p) <= 0 then
    local first = call('ZRANGE', p.k .. 'cool', 0, 0, 'WITHSCORES')
    if first[1] == nil then return 'Unavailable' end
    back = tonumber(first[2])
  end
  back = math.max(back, p.spent)
  if back > math.max(0, deadline) then return 'Cooling', back end
  return nil
end

-- Counts a place in a pool's queue, and puts it there.
local function enter(p, node, ticket, lease_request, number)
  call('ZADD', p.k .. 'line:' .. line_of(lease_request, node), number, ticket)
  if lease_request == 'D' then p.direct_waiting = p.direct_waiting + 1 end
  if string.sub(lease_request, 1, 1) == 'P' then call('HINCRBY', p.k .. 'pins', string.sub(lease_request, 3), 1) end
  p.waiting, p.changed = p.waiting + 1, true
  place_line(p, line_of(lease_request, node), lease_request)
end

local function quit(p, node, ticket, lease_request)
  call('ZREM', p.k .. 'line:' .. line_of(lease_request, node), ticket)
  if lease_request == 'D' then p.direct_waiting = p.direct_waiting - 1 end
  if string.sub(lease_request, 1, 1) == 'P' then
    local account = string.sub(lease_request, 3)
    if call('HINCRBY', p.k .. 'pins', account, -1) <= 0 then call('HDEL', p.k .. 'pins', account) end
  end
  p.waiting, p.changed = p.waiting - 1, true
  place_line(p, line_of(lease_request, node), lease_request)
end

-- The windows of an account's quota: their keys and what they say (`domain/quota.ts`), with `;` between. Empty without any.
local function quota_of(account) return table.concat(call('HGETALL', K .. 'quota:' .. account), ';') end

-- Learns windows of an account's quota. Of two words about one the later counts, and of more than the most the oldest goes that has
-- something left.
local function learn_quota(account, text)
  if not is_member(pool_of(account), account) then return end
  local key = K .. 'quota:' .. account
  local function seen_of(window)
    local status, seen = string.match(window, '^[^,]*,[^,]*,[^,]*,[^,]*,([^,]*),([^,]*),')
    return tonumber(seen) or 0, status
  end
  for name, window in string.gmatch(text, '([^;]+);([^;]+)') do
    local known = call('HGET', key, name)
    if not known or seen_of(known) <= seen_of(window) then call('HSET', key, name, window) end
  end
  while call('HLEN', key) > WINDOWS do
    local all, oldest, least = call('HGETALL', key), nil, INF
    for i = 1, #all, 2 do
      local seen, status = seen_of(all[i + 1])
      if status == 'exhausted' then seen = seen + BEHIND_ALL end
      if seen < least then oldest, least = all[i], seen end
    end
    call('HDEL', key, oldest)
  end
  call('PEXPIRE', key, QUOTA)
  local p = pool_of(account)
  if p.choose == 'spend_soonest_reset' then place(p, account) end
end

local over_budgets

-- The content of a grant: account, fence, the account's epoch and token version, whether it is being cleaned up, the revision, the pool,
-- its coolings, whether this lease probes it, the windows of the account's quota, and, if its budgets have too little left, until when, in
-- milliseconds: `a` of its account, `u` of the upstream.
local function grant_of(p, node, ticket, account, fence)
  local facts, cleaning, quota, over = {}, '0', '', ''
  if account ~= '' then
    facts = call('HMGET', health_key(account), 'epoch', 'token')
    cleaning = call('HEXISTS', p.k .. 'cleaning', account) == 1 and '1' or '0'
    quota, over = quota_of(account), budgeted and over_budgets(node, ticket) or ''
  end
  return {
    account, fence, facts[1] or '0', facts[2] or '0', cleaning, revision, p.name, int(p.coolings),
    p.probe == node .. '|' .. ticket and '1' or '0', quota, over
  }
end

-- The lease of a ticket: its pool, account and fence; nil without one.
local function lease_of(node, ticket)
  local held = call('HGET', K .. 'leases:' .. node, ticket)
  if not held then return nil end
  local fence, account, name = string.match(held, '^(%S+) (%S*) (%S+)$')
  return by_name[name], account, fence
end

local function waiting_reply(record) return { 'waiting', int(record.number), record.holding and '1' or '0' } end

-- The reply about a ticket of this node that has a lease, or that waits; nil for another one.
local function claim_of(ticket)
  local p, account, fence = lease_of(me, ticket)
  if p then return { 'granted', unpack(grant_of(p, me, ticket, account, fence)) } end
  local record = record_of(me, ticket)
  return record and waiting_reply(record)
end

local function hold(p, node, ticket, account, fence)
  call('HSET', K .. 'leases:' .. node, ticket, int(fence) .. ' ' .. account .. ' ' .. p.name)
  p.in_use, p.changed = p.in_use + 1, true
  if account == '' then
    p.direct_in_use = p.direct_in_use + 1
    return
  end
  call('HINCRBY', p.k .. 'use', account, 1)
  local last = tonumber(call('HGET', p.k .. 'last', account))
  if last == nil or last < fence then call('HSET', p.k .. 'last', account, fence) end
  place(p, account)
end

-- The queue of a pool with the earliest waiter that can be served now, the account, and the waiter's number.
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
  local from = 0
  while true do
    local lines = call('ZRANGE', p.k .. 'lines', from, from + 15, 'WITHSCORES')
    for i = 1, #lines, 2 do
      local lease_request, node = string.match(lines[i], '^(.*)|(.*)$')
      if listens(node) then
        local account = pick(p, lease_request)
        if account or (lease_request == 'D' and direct_allowed) then return lines[i], account, tonumber(lines[i + 1]) end
      end
    end
    if #lines < 32 then return nil end
    from = from + 16
  end
end

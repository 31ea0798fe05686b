-- The pools in the store: `Pools` over Redis keys, with the same names and results. Every script is this text followed by its
-- own. Times are milliseconds of the store; tests may pass their own time.
--
-- Invariant: after every script, no waiter remains that could be served. Messages for nodes are collected in `outbox` and
-- sent by `finish`, one message for each node; `out:<node>` keeps them until the node's next heartbeat acknowledges them.
--
-- A lease request (`lease_request`) is `D` (a share of the global limit), `P:<account>` (this account), `A` (any) or
-- `A:<account>,<account>` (any, these last; sorted). Equal requests of a node wait in one queue, `line:<lease_request>|<node>`.
-- `lines` has the queues whose first waiter may be served, by that waiter's number, and `queue` has all waiters.
--
-- A pool has its keys behind `k`: those of `default` are the ones of a store with a single pool. A request for `default` alone
-- waits in `tickets:<node>`, and its lease is in `leases:<node>`. Any other request has a record (`several:<node>`), and a lease of any
-- other pool is in `held:<node>`. The pools are listed in the field `pools` of `lim`, which is absent while `default` is the only one.
local K = 'gw:{main}:'
local call = redis.call
local INF = math.huge
-- Milliseconds after which one request tries an account whose upstream states a longer wait (`backOff.ts`).
local TRIED_AFTER = 3600000
-- Order of accounts: unused ones by arrival come first, those being cleaned up come last.
local NEVER_GIVEN, BEHIND_ALL = -2 ^ 40, 2 ^ 50
local ALIVE, DEAF = 5000, 2000
-- The least time for nodes to return to a server, and the distance of its new numbers from those that its data may lack.
local RETURN, DISTANCE = 1500, 2 ^ 20
-- Conversations that are known, and the longest that one is kept after its last turn.
local CONVERSATIONS, STICKY = 10000, 86400000
-- Windows of an account's quota that are kept, and how long after the last word about one.
local WINDOWS, QUOTA = 16, 2592000000

local now = tonumber(ARGV[1])
if now == nil then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local me, incarnation = ARGV[2], ARGV[3]

local limits = call('HMGET', K .. 'lim', 'per', 'global', 'queue', 'direct', 'revision', 'pools', 'budgets')
local revision = limits[5] or '0'
local counted = call('HMGET', K .. 'sum', 'in_use', 'waiting', 'given', 'numbered', 'arrived', 'stamped', 'direct_in_use',
  'direct_waiting', 'spent')
-- Counters of all pools.
local given, numbered, arrived = tonumber(counted[3]) or 0, tonumber(counted[4]) or 0, tonumber(counted[5]) or 0
local stamped = tonumber(counted[6]) or 0
local epoch = call('GET', K .. 'epoch') or ''
local quiet = tonumber(call('GET', K .. 'quiet')) or 0
local outbox, notified = {}, {}
local subscribed = {}

-- `skip`: whether requests that have another pool leave this one out, as in `poolQueue.ts`.
local function make_pool(name, per, global, queue, direct)
  return {
    name = name, k = name == 'default' and K or K .. 'pool:' .. name .. ':', open = true, leaving = false,
    per = per, global = global, queue = queue, direct = direct,
    in_use = 0, waiting = 0, direct_in_use = 0, direct_waiting = 0,
    -- When the window of the upstream's used-up budget ends; 0 while it has something left.
    spent = 0,
    skip = 'no', coolings = 0, in_row = 0, failures = 0
  }
end

local default = make_pool('default', tonumber(limits[1]) or 1, tonumber(limits[2]) or 0, tonumber(limits[3]) or 0,
  tonumber(limits[4]) or 1)
default.in_use, default.waiting = tonumber(counted[1]) or 0, tonumber(counted[2]) or 0
-- Active and waiting requests of callers with their own tokens.
default.direct_in_use, default.direct_waiting = tonumber(counted[7]) or 0, tonumber(counted[8]) or 0
default.spent = tonumber(counted[9]) or 0

-- All pools, and those that have left the configuration and still have leases. `total` bounds the slots in use of all.
local pools, by_name, total = { default }, { default = default }, INF
local multi_pool = limits[6] and true or false
-- The functions of `multi_pool.lua`, once they are made.
local S
-- Whether accounts or upstreams have budgets, and the functions of `budgets.lua`, once they are made.
local budgeted = limits[7] and true or false
local B

if multi_pool then
  local listed = cjson.decode(limits[6])
  pools, total = {}, listed[1] < 0 and INF or listed[1]
  for i, facts in ipairs(listed[2]) do
    local p = facts[1] == 'default' and default or make_pool(facts[1], facts[2], facts[3], facts[4], facts[5])
    p.open, p.leaving = facts[6] == 1, facts[7] == 1
    local read = call('HMGET', p.k .. 'sum', 'in_use', 'waiting', 'direct_in_use', 'direct_waiting', 'skip', 'till', 'probe',
      'coolings', 'in_row', 'failures', 'failed', 'requests', 'cause', 'spent')
    p.in_use, p.waiting = tonumber(read[1]) or 0, tonumber(read[2]) or 0
    p.direct_in_use, p.direct_waiting = tonumber(read[3]) or 0, tonumber(read[4]) or 0
    p.skip, p.till, p.probe = read[5] or 'no', tonumber(read[6]), read[7] ~= '' and read[7] or nil
    p.coolings, p.in_row, p.failures = tonumber(read[8]) or 0, tonumber(read[9]) or 0, tonumber(read[10]) or 0
    p.failed, p.requests, p.cause = read[11] ~= '' and read[11] or nil, tonumber(read[12]) or 0, read[13] or ''
    p.spent = tonumber(read[14]) or 0
    pools[i], by_name[p.name] = p, p
  end
end

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

-- The pool of an account. Only accounts of pools other than `default` have an entry in `home`.
local function pool_of(account)
  return multi_pool and by_name[call('HGET', K .. 'home', account) or 'default'] or default
end

local function all_in_use()
  if not multi_pool then return default.in_use end
  local sum = 0
  for _, p in ipairs(pools) do sum = sum + p.in_use end
  return sum
end

-- The last step of every script with changes.
local function finish(reply)
  call('HSET', K .. 'sum', 'in_use', default.in_use, 'waiting', default.waiting, 'given', given, 'numbered', numbered,
    'arrived', arrived, 'stamped', stamped, 'direct_in_use', default.direct_in_use,
    'direct_waiting', default.direct_waiting, 'at', int(now))
  if S then S.save() end
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

-- A disabled account keeps its state without probes: its recovery waits in `parked` until it is enabled.
local function state_of(p, account)
  local parked = call('HGET', p.k .. 'parked', account)
  if parked then
    local state, parked_till = string.match(parked, '^(%S+) (%S+)$')
    return state, tonumber(parked_till)
  end
  local till = call('ZSCORE', p.k .. 'cool', account)
  if till then return 'cooling', tonumber(till) end
  till = call('ZSCORE', p.k .. 'untried', account)
  if till then return 'out', tonumber(till) end
  return 'ready', 0
end

-- The state of an account apart from its budgets: at a budget it cools until the window ends, and `beneath` has what it is then.
local function health_of(p, account)
  local beneath = budgeted and call('HGET', p.k .. 'beneath', account)
  if not beneath then return state_of(p, account) end
  local state, till = string.match(beneath, '^(%S+) (%S+)$')
  return state, tonumber(till)
end

local function used(p, account) return tonumber(call('HGET', p.k .. 'use', account)) or 0 end

local function in_rotation(p)
  return call('SCARD', p.k .. 'roster') - call('SCARD', p.k .. 'disabled') - call('ZCARD', p.k .. 'cool') -
    call('ZCARD', p.k .. 'untried')
end

-- The order in which a pool gives its accounts with a free slot: `choice.ts` over Redis keys. `choice` has how it chooses, the time and the
-- sum of the weights; `ranks` the place, priority and weight of each account, and `starts` when its next grant may start.
local STEP, MOST, UNKNOWN, PLACES, TOLERANCE = 2 ^ -40, 1023, 2 ^ 43, 2 ^ 20, 1e-9

local function exact(number) return string.format('%.17g', number) end

local function choice_of(p)
  if not p.choice then
    local read = call('HMGET', p.k .. 'choice', 'choose', 'at', 'sum')
    p.choice = { choose = read[1] or 'rotate', at = tonumber(read[2]) or 0, sum = tonumber(read[3]) or 1 }
  end
  return p.choice
end

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
  local choose = choice_of(p).choose
  local last = tonumber(call('HGET', p.k .. 'last', account)) or NEVER_GIVEN
  if choose == 'rotate' then return last end
  local order, priority, weight = rank_of(p, account)
  if choose == 'fill_first' then return order - priority * PLACES end
  if choose == 'weighted' then return start_of(p, account) + 1 / weight end
  local reset = reset_of(account)
  return reset and reset + math.min(order, MOST) / 2048 or last - UNKNOWN
end

-- Whether the share of an account permits the next grant.
local function is_due(p, account)
  local choice = choice_of(p)
  return start_of(p, account) < choice.at + 1 / choice.sum - TOLERANCE
end

-- An account is back in rotation.
local function enters(p, account)
  if choice_of(p).choose ~= 'weighted' then return end
  call('HSET', p.k .. 'starts', account, exact(math.max(start_of(p, account), p.choice.at)))
end

-- Counts a grant.
local function count_given(p, account)
  local choice = choice_of(p)
  if choice.choose ~= 'weighted' then return end
  local _, _, weight = rank_of(p, account)
  local start = start_of(p, account)
  if not is_due(p, account) then choice.at = math.max(choice.at, start) end
  choice.at = choice.at + 1 / choice.sum
  call('HSET', p.k .. 'choice', 'at', exact(choice.at))
  call('HSET', p.k .. 'starts', account, exact(math.max(start + 1 / weight, choice.at - 1 / weight)))
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
  if is_member(p, account) and is_enabled(p, account) and state_of(p, account) == 'ready' and used(p, account) < p.per then
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

-- The account that answered the conversation of the present request last; only set while that request asks for a slot.
local preferred

-- The account that a request would get now.
local function pick(p, lease_request)
  if lease_request == 'D' then return nil end
  if string.sub(lease_request, 1, 1) == 'P' then
    local account = string.sub(lease_request, 3)
    return call('ZSCORE', p.k .. 'spare', account) and account or nil
  end
  local list, set = avoided(lease_request)
  if preferred and not set[preferred] and call('ZSCORE', p.k .. 'spare', preferred) then return preferred end
  if choice_of(p).choose == 'weighted' then
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
    if is_member(p, account) and is_enabled(p, account) and state_of(p, account) == 'ready' then ready = ready + 1 end
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
    local state, till = state_of(p, account)
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
  p.waiting, p.counts = p.waiting + 1, true
  place_line(p, line_of(lease_request, node), lease_request)
end

local function quit(p, node, ticket, lease_request)
  call('ZREM', p.k .. 'line:' .. line_of(lease_request, node), ticket)
  if lease_request == 'D' then p.direct_waiting = p.direct_waiting - 1 end
  if string.sub(lease_request, 1, 1) == 'P' then
    local account = string.sub(lease_request, 3)
    if call('HINCRBY', p.k .. 'pins', account, -1) <= 0 then call('HDEL', p.k .. 'pins', account) end
  end
  p.waiting, p.counts = p.waiting - 1, true
  place_line(p, line_of(lease_request, node), lease_request)
end

-- A request for `default` alone joins its queue. `since` and `style` are shown in the status.
local function join(node, ticket, lease_request, number, deadline, since, style)
  local facts = { int(number), int(deadline), int(since), style, lease_request }
  call('HSET', K .. 'tickets:' .. node, ticket, table.concat(facts, ' '))
  call('ZADD', K .. 'queue', number, node .. '|' .. ticket)
  enter(default, node, ticket, lease_request, number)
end

local function leave(node, ticket, lease_request)
  call('HDEL', K .. 'tickets:' .. node, ticket)
  call('ZREM', K .. 'queue', node .. '|' .. ticket)
  quit(default, node, ticket, lease_request)
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
  if choice_of(p).choose == 'spend_soonest_reset' then place(p, account) end
end

-- The content of a grant: account, fence, the account's epoch and token version, whether it is being cleaned up, and the
-- revision. With several pools also the pool, its coolings, whether this lease probes it, and the pools that are skipped. Of an account
-- with a known quota its windows follow, and of a lease whose budgets have too little left until when, in milliseconds: `a` of its account,
-- `u` of the upstream.
local function grant_of(p, node, ticket, account, fence)
  local grant = { '', fence, '0', '0', '0', revision }
  if account ~= '' then
    local facts = call('HMGET', K .. 'health:' .. account, 'epoch', 'token')
    local cleaning = call('HEXISTS', p.k .. 'cleaning', account) == 1 and '1' or '0'
    grant = { account, fence, facts[1] or '0', facts[2] or '0', cleaning, revision }
  end
  if multi_pool then
    local skipped = {}
    for _, other in ipairs(pools) do
      if other ~= p and other.skip == 'yes' then skipped[#skipped + 1] = other.name end
    end
    for _, field in ipairs({
      p.name, int(p.coolings), p.probe == node .. '|' .. ticket and '1' or '0', table.concat(skipped, ',')
    }) do grant[#grant + 1] = field end
  end
  local quota = account == '' and '' or quota_of(account)
  local over = account ~= '' and B and B.over(node, ticket) or ''
  if quota ~= '' or over ~= '' then
    for i = #grant + 1, 10 do grant[i] = '' end
    grant[11] = quota
  end
  if over ~= '' then grant[12] = over end
  return grant
end

-- The lease of a ticket: its pool, account and fence; nil without one.
local function lease_of(node, ticket)
  local held = call('HGET', K .. 'leases:' .. node, ticket)
  if held then
    local fence, account = string.match(held, '^(%S+) (.*)$')
    return default, account, fence
  end
  held = multi_pool and call('HGET', K .. 'held:' .. node, ticket)
  if not held then return nil end
  local fence, account, name = string.match(held, '^(%S+) (%S*) (%S+)$')
  return by_name[name], account, fence
end

local function hold(p, node, ticket, account, fence)
  if p == default then
    call('HSET', K .. 'leases:' .. node, ticket, int(fence) .. ' ' .. account)
  else
    call('HSET', K .. 'held:' .. node, ticket, int(fence) .. ' ' .. account .. ' ' .. p.name)
  end
  p.in_use, p.counts = p.in_use + 1, true
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

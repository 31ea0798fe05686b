-- What several pools need besides: requests that name pools, pools that come and go, and the cooling of upstreams. Most calls of a
-- store with one pool do without, so these functions are made on demand. The text within is not indented.
--
-- A record is JSON: number, deadline, since, style, spread, whether it holds at its first pool, the targets in order, and the
-- refusal of the places that it has given up. A target is a pool's name, the lease_request there, and `placed`, `parked` (the pool is
-- skipped), `later` (once it is widened) or `gone`. `several` has the waiters with a record that have a place in the pool.
local function load_multi_pool()
if S then return end

-- Saves the list of pools. It is absent while `default` is the only pool and no waiter has a record.
local function save_pools()
  if #pools == 1 and default.open and not default.leaving and total == INF and call('ZCARD', K .. 'several') == 0 then
    call('HDEL', K .. 'lim', 'pools')
    return
  end
  multi_pool = true
  local list = {}
  for i, p in ipairs(pools) do
    list[i] = { p.name, p.per, p.global, p.queue, p.direct, p.open and 1 or 0, p.leaving and 1 or 0 }
  end
  call('HSET', K .. 'lim', 'pools', cjson.encode({ total == INF and -1 or total, list }))
end

local function configured(name)
  local p = by_name[name]
  return p and not p.leaving and p or nil
end

-- A pool of a name that the store does not know yet: its nodes are returning to an empty store.
local function pool_named(name)
  if by_name[name] == nil then
    local p = make_pool(name, 1, 0, 0, 1)
    p.open = false
    pools[#pools + 1], by_name[name] = p, p
    save_pools()
  end
  return by_name[name]
end

-- The records of waiters, by `<node>|<ticket>`: false for none. `touched` ones are saved at the end.
local records, touched = {}, {}

local function touch(record)
  if not record.touched then
    record.touched = true
    touched[#touched + 1] = record
  end
end

local function save_record(record)
  local place = K .. 'several:' .. record.node
  if record.ended then
    call('HDEL', place, record.ticket)
    return
  end
  call('HSET', place, record.ticket, cjson.encode({
    record.number, record.deadline, record.since, record.style, record.spread, record.holding and 1 or 0, record.targets,
    record.lost or '', record.lost_till and int(record.lost_till) or ''
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
    if p.counts and p ~= default then
      call('HSET', p.k .. 'sum', 'in_use', p.in_use, 'waiting', p.waiting, 'direct_in_use', p.direct_in_use,
        'direct_waiting', p.direct_waiting)
    end
    if p.chilled then
      call('HSET', p.k .. 'sum', 'skip', p.skip, 'till', p.till and int(p.till) or '', 'probe', p.probe or '',
        'coolings', p.coolings, 'in_row', p.in_row, 'failures', p.failures, 'failed', p.failed or '',
        'requests', p.requests or 0, 'cause', p.cause or '')
    end
    p.counts, p.chilled = nil, nil
  end
  if #pools == 1 then save_pools() end
end

local function end_record(record)
  record.ended = true
  call('ZREM', K .. 'queue', record.id)
  touch(record)
end

local function is_place(target) return target[3] == 'placed' or target[3] == 'parked' end

local function leave_place(record, target)
  local p = by_name[target[1]]
  -- A parked one is in no line.
  quit(p, record.node, record.ticket, target[2])
  target[3] = 'gone'
  call('ZREM', p.k .. 'several', record.id)
  touch(record)
end

-- Takes a waiter out of every queue.
local function leave_all(record)
  for _, target in ipairs(record.targets) do
    if is_place(target) then leave_place(record, target) end
  end
  end_record(record)
end

-- The record of a waiter; nil for a request for `default` alone.
local function record_of(node, ticket)
  if not multi_pool then return nil end
  local id = node .. '|' .. ticket
  if records[id] == nil then
    local text = call('HGET', K .. 'several:' .. node, ticket)
    records[id] = false
    if text then
      local facts = cjson.decode(text)
      records[id] = {
        id = id, node = node, ticket = ticket, number = facts[1], deadline = facts[2], since = facts[3], style = facts[4],
        spread = facts[5], holding = facts[6] == 1, targets = facts[7], lost = facts[8] ~= '' and facts[8] or nil,
        lost_till = tonumber(facts[9])
      }
    end
  end
  local record = records[id]
  return record and not record.ended and record or nil
end

local function join_place(record, target)
  local p = by_name[target[1]]
  target[3] = 'placed'
  call('ZADD', p.k .. 'several', record.number, record.id)
  enter(p, record.node, record.ticket, target[2], record.number)
  touch(record)
end

local function has_places(record)
  for _, target in ipairs(record.targets) do
    if is_place(target) then return true end
  end
  return false
end

-- The refusal of two pools: the one that says when to come back, and the earlier time.
local function sooner_retry(one, one_till, other, other_till)
  if one == nil then return other, other_till end
  if one ~= 'Cooling' then
    if other == 'Cooling' then return other, other_till end
    return one, one_till
  end
  if other == 'Cooling' and other_till < one_till then return other, other_till end
  return one, one_till
end

local settle

-- Ends the hold of a waiter at its first pool: it takes its other places, by its arrival.
local function widen(record)
  if not record.holding then return end
  record.holding = false
  for _, target in ipairs(record.targets) do
    if target[3] == 'later' then
      target[3] = 'gone'
      local p = by_name[target[1]]
      local reason, till = 'Unavailable', nil
      if p then reason, till = hopeless(p, target[2], record.deadline) end
      if reason then
        record.lost, record.lost_till = sooner_retry(record.lost, record.lost_till, reason, till)
      elseif has_place(p, target[2]) then
        join_place(record, target)
      end
    end
  end
  touch(record)
  settle(record)
end

-- Gives up a place. The last one of a waiter refuses it, unless it takes its other places.
local function give_up(record, target, reason, till)
  record.lost, record.lost_till = sooner_retry(record.lost, record.lost_till, reason, till)
  widen(record)
  leave_place(record, target)
  if has_places(record) then return settle(record) end
  end_record(record)
  notify(record.node, 'refuse ' .. record.ticket .. ' ' .. table.concat(refusal(record.lost, record.lost_till), ' '))
end

-- Parks the places of a waiter in skipped pools while it has a place in another one.
settle = function(record)
  local has_other = false
  for _, target in ipairs(record.targets) do
    if is_place(target) and by_name[target[1]].skip ~= 'yes' then has_other = true end
  end
  for _, target in ipairs(record.targets) do
    local p = by_name[target[1]]
    local parks = has_other and p and p.skip == 'yes'
    if target[3] == 'placed' and parks then
      call('ZREM', p.k .. 'line:' .. line_of(target[2], record.node), record.ticket)
      place_line(p, line_of(target[2], record.node), target[2])
      target[3] = 'parked'
      touch(record)
    elseif target[3] == 'parked' and not parks then
      local reason, till = hopeless(p, target[2], record.deadline)
      if reason then return give_up(record, target, reason, till) end
      call('ZADD', p.k .. 'line:' .. line_of(target[2], record.node), record.number, record.ticket)
      place_line(p, line_of(target[2], record.node), target[2])
      target[3] = 'placed'
      touch(record)
    end
  end
end

-- Calls `f` with the waiters that have a record and a place in a pool, in the order of arrival.
local function each_record(p, f)
  if not multi_pool then return end
  for _, id in ipairs(call('ZRANGE', p.k .. 'several', 0, -1)) do
    local node, ticket = string.match(id, '^(.*)|(.*)$')
    local record = record_of(node, ticket)
    if record then f(record) end
  end
end

-- Leaves a pool out, or takes it in again. Costs O(log n) for each waiter that has a place in it and another one.
local function set_skip(p, skip)
  p.skip, p.chilled = skip, true
  if skip == 'yes' then each_record(p, widen) end
  each_record(p, settle)
end

-- The pool that serves a request now, and its account; nil if it must wait. Skipped pools count only if no other one has a slot
-- or a place in its queue.
local function choose(targets, spread)
  if all_in_use() >= total then return nil end
  local slots, has_other = {}, false
  for i, target in ipairs(targets) do
    local p = by_name[target[1]]
    local can, account = can_serve(p, target[2])
    slots[i] = can and { p, account } or false
    if p.skip ~= 'yes' and (can or has_place(p, target[2])) then has_other = true end
  end
  local best, share = nil, -INF
  for _, slot in ipairs(slots) do
    local p = slot and slot[1]
    if p and not (has_other and p.skip == 'yes') then
      if spread == 'order' then return slot end
      local all = math.min(p.global, in_rotation(p) * p.per)
      local free = all == 0 and 0 or (all - p.in_use) / all
      if free > share then best, share = slot, free end
    end
  end
  return best
end

-- Refuses the places of waiters that wait elsewhere while the pool is skipped.
local function refuse_parked(p)
  each_record(p, function(record)
    for _, target in ipairs(record.targets) do
      if target[1] == p.name and target[3] == 'parked' then
        local reason, till = hopeless(p, target[2], record.deadline)
        if reason then give_up(record, target, reason, till) end
        return
      end
    end
  end)
end

-- Refuses every waiter of a pool that has closed.
local function refuse_all(p)
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do refuse(p, line_of('D', node)) end
  for _, account in ipairs(call('HKEYS', p.k .. 'pins')) do refuse_pinned(p, account) end
end

-- When an upstream as a whole is left alone: `UpstreamCooling` over the fields of its pool. Random shares are arguments, with the
-- jitter applied.
local FIRST, LONGEST, LONGEST_ASKED, MOST_FAILURES = 1000, 60000, 600000, 3

local function asked(retry) return math.min(math.max(retry * 1000, FIRST), LONGEST_ASKED) end

-- Skips the pool, or takes it in again, by the time and by its probe.
local function refresh(p)
  local skip = 'no'
  if p.till then skip = (now < p.till or p.probe) and 'yes' or 'probe' end
  if skip ~= p.skip then set_skip(p, skip) end
end

local function clear_failures(p) p.failures, p.failed, p.requests, p.chilled = 0, nil, 0, true end

local function reset_cooling(p)
  p.till, p.probe, p.in_row = nil, nil, 0
  clear_failures(p)
  refresh(p)
end

local function cool(p, fault, retry, random)
  local own = math.min(FIRST * 2 ^ math.min(p.in_row, 30) * (1 + random), LONGEST)
  local delay = math.floor((retry and asked(retry) or own) + 0.5)
  p.cause = fault
  p.till, p.probe, p.in_row, p.coolings = now + delay, nil, p.in_row + 1, p.coolings + 1
  clear_failures(p)
  return delay
end

-- Notes the first event of a try: the upstream works. Returns whether it was cooled.
local function upstream_succeeded(p)
  if not p.till and p.in_row == 0 and p.failures == 0 then return false end
  local was_cooled = p.till ~= nil
  reset_cooling(p)
  serve()
  return was_cooled
end

-- Notes a failure of the upstream in the try of a lease. Returns the delay of the cooling that it begins.
local function upstream_failed(p, holder, fault, coolings, request, retry, random)
  local delay
  p.chilled = true
  if p.probe == holder then
    delay = cool(p, fault, retry, random)
  elseif p.till then
    if not retry then return nil end
    p.till = math.max(p.till, now + asked(retry))
  elseif coolings == int(p.coolings) then
    p.failures = p.failures + 1
    if not p.failed then
      p.failed, p.requests = request, 1
    elseif p.failed ~= request then
      p.requests = 2
    end
    if fault == 'connection' or (p.failures >= MOST_FAILURES and p.requests == 2) then
      delay = cool(p, fault, retry, random)
    end
  else
    return nil
  end
  refresh(p)
  serve()
  return delay
end

-- The report about the upstream of a lease, in the arguments from index `i` on: `ok` or a fault, the coolings before the try,
-- the request, seconds of `Retry-After`, and a random share. Returns the delay of the cooling that it begins, or `back` if it ends
-- one.
local function upstream_report_at(i, ticket)
  local verdict = ARGV[i]
  local p = verdict and verdict ~= '' and lease_of(me, ticket)
  -- `default` alone is never left out.
  if not p or p.leaving or total == INF then return nil end
  if verdict == 'ok' then return upstream_succeeded(p) and 'back' or nil end
  local delay = upstream_failed(p, me .. '|' .. ticket, verdict, ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3]),
    tonumber(ARGV[i + 4]) or 0)
  return delay and int(delay)
end

-- Forgets a pool that has left the configuration and has no leases. `default` keeps its place.
local function forget_pool(p)
  if not p.leaving or p.in_use > 0 or p == default then return end
  for _, key in ipairs({
    'sum', 'roster', 'disabled', 'spare', 'use', 'last', 'pins', 'lines', 'several', 'cool', 'untried', 'trying', 'parked',
    'cleaning', 'choice', 'ranks', 'starts', 'spent', 'beneath', 'stated'
  }) do call('DEL', p.k .. key) end
  for i, other in ipairs(pools) do
    if other == p then table.remove(pools, i) end
  end
  by_name[p.name] = nil
  save_pools()
end

S = {
  configured = configured, save = save, save_pools = save_pools, pool_named = pool_named, record_of = record_of,
  records = records, touch = touch, is_place = is_place, leave_all = leave_all,
  join_place = join_place, has_places = has_places, sooner_retry = sooner_retry, widen = widen,
  give_up = give_up, settle = settle, each_record = each_record, set_skip = set_skip,
  choose = choose, refuse_parked = refuse_parked, refuse_all = refuse_all, refresh = refresh,
  reset_cooling = reset_cooling, upstream_succeeded = upstream_succeeded, upstream_report_at = upstream_report_at,
  forget_pool = forget_pool
}
end

if multi_pool then load_multi_pool() end

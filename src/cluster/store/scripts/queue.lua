-- The requests that hold and wait for slots: `poolQueue.ts` over Redis keys. A request holds at most one slot; the first one that
-- it can use is granted, and its other places go in the same script.
--
-- A record is JSON: number, deadline, since, style, spread, whether it holds at its first pool, the targets in order, and the
-- refusal of the places that it has given up. A target is a pool's name, the wish there, and `placed`, `parked` (the pool is
-- skipped), `later` (once it is widened) or `gone`. `several` has the waiters with a record that have a place in the pool.

local function end_record(record)
  record.ended = true
  call('ZREM', K .. 'queue', record.id)
  touch(record)
end

local function is_place(target) return target[3] == 'placed' or target[3] == 'parked' end

local function leave_place(record, target)
  local p = by_name[target[1]]
  if target[3] == 'parked' then
    -- It is in no line.
    p.waiting, p.counts = p.waiting - 1, true
    if target[2] == 'D' then p.direct_waiting = p.direct_waiting - 1 end
    if string.sub(target[2], 1, 1) == 'P' then
      local account = string.sub(target[2], 3)
      if call('HINCRBY', p.k .. 'pins', account, -1) <= 0 then call('HDEL', p.k .. 'pins', account) end
    end
  else
    quit(p, record.node, record.ticket, target[2])
  end
  target[3] = 'gone'
  call('ZREM', p.k .. 'several', record.id)
  if p == default then
    call('HDEL', K .. 'tickets:' .. record.node, record.ticket)
    call('HINCRBY', K .. 'node:' .. record.node, 'both', -1)
  end
  touch(record)
end

-- Takes a waiter out of every queue.
local function leave_all(record)
  for _, target in ipairs(record.targets) do
    if is_place(target) then leave_place(record, target) end
  end
  end_record(record)
end

-- The record of a waiter; nil for a request for `default` alone. A node of an earlier version may have granted or refused the
-- place in `default`; then the other places go.
local function record_of(node, ticket)
  if not several then return nil end
  local id = node .. '|' .. ticket
  if records[id] == nil then
    local text = call('HGET', K .. 'several:' .. node, ticket)
    records[id] = false
    if text then
      local facts = cjson.decode(text)
      local record = {
        id = id, node = node, ticket = ticket, number = facts[1], deadline = facts[2], since = facts[3], style = facts[4],
        spread = facts[5], holding = facts[6] == 1, targets = facts[7], lost = facts[8] ~= '' and facts[8] or nil,
        lost_till = tonumber(facts[9])
      }
      records[id] = record
      for _, target in ipairs(record.targets) do
        if target[1] == 'default' and is_place(target) and call('HEXISTS', K .. 'tickets:' .. node, ticket) == 0 then
          target[3] = 'gone'
          call('ZREM', K .. 'several', id)
          call('HINCRBY', K .. 'node:' .. node, 'both', -1)
          leave_all(record)
        end
      end
    end
  end
  local record = records[id]
  return record and not record.ended and record or nil
end

local function join_place(record, target)
  local p = by_name[target[1]]
  target[3] = 'placed'
  if p == default then
    note_ticket(record.node, record.ticket, target[2], record.number, record.deadline, record.since, record.style)
    call('HINCRBY', K .. 'node:' .. record.node, 'both', 1)
  end
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
local function milder(one, one_till, other, other_till)
  if one == nil then return other, other_till end
  if one ~= 'Cooling' then
    if other == 'Cooling' then return other, other_till end
    return one, one_till
  end
  if other == 'Cooling' and other_till < one_till then return other, other_till end
  return one, one_till
end

local function refusal(reason, till) return { reason, int(till and till - now or 0) } end

local settle

-- Ends the hold of a waiter at its first pool: it takes its further places, by its arrival.
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
        record.lost, record.lost_till = milder(record.lost, record.lost_till, reason, till)
      elseif has_place(p, target[2]) then
        join_place(record, target)
      end
    end
  end
  touch(record)
  settle(record)
end

-- Gives up a place. The last one of a waiter refuses it, unless it takes its further places.
local function give_up(record, target, reason, till)
  record.lost, record.lost_till = milder(record.lost, record.lost_till, reason, till)
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
  if not several then return end
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

-- Gives a slot; the first one after the time of a cooling probes the upstream. Returns the fence.
local function give(p, node, ticket, account)
  given = given + 1
  hold(p, node, ticket, account or '', given)
  if p.skip == 'probe' then
    p.probe = node .. '|' .. ticket
    set_skip(p, 'yes')
  end
  return int(given)
end

-- The pool and the queue with the earliest waiter that can be served now, and the account.
local function next_waiter()
  local first, from, line, account = INF, nil, nil, nil
  for _, p in ipairs(pools) do
    if p.open and p.waiting > 0 and p.in_use < p.global then
      local its_line, its_account, number = next_line(p)
      if its_line and number < first then first, from, line, account = number, p, its_line, its_account end
    end
  end
  return from, line, account
end

-- Serves waiters in order while there are free slots.
local function serve()
  if quiet > now then return end
  while all_in_use() < total do
    local p, line, account = next_waiter()
    if p == nil then return end
    local wish, node = string.match(line, '^(.*)|(.*)$')
    local ticket = call('ZRANGE', p.k .. 'line:' .. line, 0, 0)[1]
    local record = record_of(node, ticket)
    if record then
      local placed = {}
      for _, target in ipairs(record.targets) do
        if target[3] == 'placed' then placed[#placed + 1] = target end
      end
      p, account = unpack(choose(placed, record.spread) or { p, account })
      leave_all(record)
    elseif p == default then
      leave(node, ticket, wish)
    elseif call('ZSCORE', p.k .. 'line:' .. line, ticket) then
      -- A place without a waiter.
      quit(p, node, ticket, wish)
      p = nil
    else
      p = nil
    end
    if p then
      local fence = give(p, node, ticket, account)
      notify(node, 'grant ' .. ticket .. ' ' .. table.concat(grant_of(p, node, ticket, account or '', fence), ' '))
    end
  end
end

-- Refuses waiters at the head of a queue that cannot be served in time.
local function refuse(p, line)
  local wish, node = string.match(line, '^(.*)|(.*)$')
  while true do
    local ticket = call('ZRANGE', p.k .. 'line:' .. line, 0, 0)[1]
    if ticket == nil then return end
    local record = record_of(node, ticket)
    local waits = record == nil and call('HGET', K .. 'tickets:' .. node, ticket)
    if record then
      local reason, till = hopeless(p, wish, record.deadline)
      if reason == nil then return end
      for _, target in ipairs(record.targets) do
        if target[1] == p.name then
          give_up(record, target, reason, till)
          break
        end
      end
    elseif waits and p == default then
      local reason, till = hopeless(p, wish, tonumber(string.match(waits, '^%S+ (%S+)')))
      if reason == nil then return end
      leave(node, ticket, wish)
      notify(node, 'refuse ' .. ticket .. ' ' .. table.concat(refusal(reason, till), ' '))
    else
      -- A place without a waiter.
      quit(p, node, ticket, wish)
    end
  end
end

local function refuse_pinned(p, account)
  if call('HEXISTS', p.k .. 'pins', account) == 0 then return end
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do refuse(p, line_of('P:' .. account, node)) end
end

local function refuse_shared(p)
  if p.waiting == 0 or (p.open and in_rotation(p) > 0) then return end
  each_record(p, widen)
  for _, line in ipairs(call('ZRANGE', p.k .. 'lines', 0, -1)) do
    if string.sub(line, 1, 1) == 'A' then refuse(p, line) end
  end
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

local function set_state(p, account, state, till)
  call('ZREM', p.k .. 'cool', account)
  call('ZREM', p.k .. 'untried', account)
  -- An account that is disabled or enabled during a probe stays assigned to that node.
  if state ~= 'out' or till ~= INF then call('HDEL', p.k .. 'trying', account) end
  call('HDEL', p.k .. 'parked', account)
  if state ~= 'ready' and not is_enabled(p, account) then
    call('HSET', p.k .. 'parked', account, state .. ' ' .. (till == INF and 'inf' or int(till)))
  elseif state == 'cooling' then
    call('ZADD', p.k .. 'cool', till, account)
  elseif state == 'out' then
    call('ZADD', p.k .. 'untried', till, account)
  end
  place(p, account)
end

local function set_enabled(p, account, enabled)
  local state, till = state_of(p, account)
  if is_enabled(p, account) ~= enabled then
    call(enabled and 'SREM' or 'SADD', p.k .. 'disabled', account)
    set_state(p, account, state, till)
    if not enabled then refuse_pinned(p, account) end
  else
    place(p, account)
  end
end

-- Takes an account out of rotation: until `till` (`cooling`), or until a probe at `till` (`out`).
local function suspend(p, account, state, till)
  if not is_member(p, account) then return end
  set_state(p, account, state, till)
  refuse_pinned(p, account)
  refuse_shared(p)
  serve()
end

local function restore(p, account)
  if not is_member(p, account) or state_of(p, account) == 'ready' then return end
  set_state(p, account, 'ready', 0)
  serve()
end

-- Returns accounts to rotation whose cooling period has ended.
local function warm()
  for _, p in ipairs(pools) do
    while true do
      local first = call('ZRANGE', p.k .. 'cool', 0, 0, 'WITHSCORES')
      if first[1] == nil or tonumber(first[2]) > now then break end
      set_state(p, first[1], 'ready', 0)
    end
    if several then serve() end
  end
end

-- Assigns to this node the accounts that are due for a probe. They are not due again until it reports.
local function due()
  local accounts = {}
  for _, p in ipairs(pools) do
    for _, account in ipairs(call('ZRANGEBYSCORE', p.k .. 'untried', '-inf', now)) do
      call('ZADD', p.k .. 'untried', INF, account)
      call('HSET', p.k .. 'trying', account, me)
      accounts[#accounts + 1] = account
    end
  end
  return accounts
end

local function recover()
  warm()
  local accounts = due()
  serve()
  return accounts
end

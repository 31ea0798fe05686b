-- The requests that hold and wait for slots: `poolQueue.ts` over Redis keys. A request holds at most one slot; the first one that
-- it can use is granted, and its other places go in the same script.

-- A refusal as nodes get it, with the milliseconds until its time.
local function refusal_fields(refusal) return { refusal.reason, int(refusal.till and refusal.till - now or 0) } end

-- The refusal of two pools: the one that says when to come back, and the earlier time.
local function sooner_retry(one, other)
  local is_sooner = other.till and (not one or not one.till or other.till < one.till)
  return (is_sooner or not one) and other or one
end

local function is_place(target) return target.state == 'placed' or target.state == 'parked' end

-- The target of a waiter in a pool; nil without one.
local function target_at(record, p)
  for _, target in ipairs(record.targets) do
    if target.pool == p.name then return target end
  end
  return nil
end

-- The targets where a waiter has a place, of those in a state alone if one is given.
local function places_of(record, state)
  local some = {}
  for _, target in ipairs(record.targets) do
    if target.state == state or (not state and is_place(target)) then some[#some + 1] = target end
  end
  return some
end

local function join_place(record, target)
  local p = by_name[target.pool]
  target.state = 'placed'
  if #record.targets > 1 then call('ZADD', p.k .. 'several', record.number, record.id) end
  count_place(p, target.request, 1)
  stand(p, record.node, record.ticket, target.request, record.number)
  touch(record)
end

local function leave_place(record, target)
  local p = by_name[target.pool]
  count_place(p, target.request, -1)
  -- A parked one is in no line.
  step_out(p, record.node, record.ticket, target.request)
  target.state = 'gone'
  call('ZREM', p.k .. 'several', record.id)
  touch(record)
end

local function end_record(record)
  record.ended = true
  call('ZREM', K .. 'queue', record.id)
  touch(record)
end

-- Takes a waiter out of every queue.
local function leave_all(record)
  for _, target in ipairs(places_of(record)) do leave_place(record, target) end
  end_record(record)
end

local settle

-- Ends the hold of a waiter at its first pool: it takes its other places, by its arrival.
local function widen(record)
  if not record.holding then return end
  record.holding = false
  for _, target in ipairs(record.targets) do
    if target.state == 'later' then
      target.state = 'gone'
      local p = by_name[target.pool]
      local refusal = { reason = 'Unavailable' }
      if p then refusal = hopeless(p, target.request, record.deadline) end
      if refusal then
        record.lost = sooner_retry(record.lost, refusal)
      elseif has_place(p, target.request) then
        join_place(record, target)
      end
    end
  end
  touch(record)
  settle(record)
end

local function notify_refusal(node, ticket, refusal)
  notify(node, 'refuse ' .. ticket .. ' ' .. table.concat(refusal_fields(refusal), ' '))
end

local function notify_grant(node, ticket, grant) notify(node, 'grant ' .. ticket .. ' ' .. table.concat(grant, ' ')) end

-- Gives up a place. The last one of a waiter refuses it, unless it takes its other places.
local function give_up(record, target, refusal)
  record.lost = sooner_retry(record.lost, refusal)
  widen(record)
  leave_place(record, target)
  if #places_of(record) > 0 then return settle(record) end
  end_record(record)
  notify_refusal(record.node, record.ticket, record.lost)
end

-- Parks the places of a waiter in skipped pools while it has a place in another one.
settle = function(record)
  local has_other = false
  for _, target in ipairs(record.targets) do
    if is_place(target) and by_name[target.pool].skip ~= 'yes' then has_other = true end
  end
  for _, target in ipairs(record.targets) do
    local p = by_name[target.pool]
    local parks = has_other and p and p.skip == 'yes'
    if target.state == 'placed' and parks then
      step_out(p, record.node, record.ticket, target.request)
      target.state = 'parked'
      touch(record)
    elseif target.state == 'parked' and not parks then
      local refusal = hopeless(p, target.request, record.deadline)
      if refusal then return give_up(record, target, refusal) end
      stand(p, record.node, record.ticket, target.request, record.number)
      target.state = 'placed'
      touch(record)
    end
  end
end

-- The targets of a request that may serve it before a deadline, and the refusal of the others, if there is one. During the quiet period of
-- an empty store all may, because returning nodes bring their leases, and the accounts may not be restored yet.
local function able_of(targets, deadline)
  local able, refusal = {}, nil
  for _, target in ipairs(targets) do
    local p = quiet > now and pool_named(target.pool) or configured(target.pool)
    local why = p and quiet <= now and hopeless(p, target.request, deadline)
    if why then
      refusal = sooner_retry(refusal, why)
    elseif p then
      able[#able + 1] = target
    end
  end
  return able, refusal
end

-- The refusal of targets where nothing comes before a deadline, and of one that was refused before them; `otherwise` if a target may serve.
local function refusal_of(targets, deadline, refusal, otherwise)
  for _, target in ipairs(targets) do
    local why = hopeless(by_name[target.pool], target.request, deadline)
    if not why then return { reason = otherwise } end
    refusal = sooner_retry(refusal, why)
  end
  return refusal or { reason = otherwise }
end

-- Lets a request of this node wait at targets: at the first one alone if it `holds`. `claim` has its style, spread and preference. With
-- `everywhere` the length of the queues counts no more. Returns the record; nil without a place.
local function join(ticket, claim, targets, number, since, deadline, holds, everywhere)
  local record = {
    id = me .. '|' .. ticket, node = me, ticket = ticket, number = number, deadline = deadline, since = since,
    style = claim.style, spread = claim.spread, preferred = claim.preferred, holding = holds, targets = targets
  }
  records[record.id] = record
  for i, target in ipairs(targets) do
    if holds and i > 1 then
      target.state = 'later'
    elseif everywhere or has_place(by_name[target.pool], target.request) then
      join_place(record, target)
    else
      target.state = 'gone'
    end
  end
  if #places_of(record) == 0 then
    records[record.id] = false
    return nil
  end
  call('ZADD', K .. 'queue', number, record.id)
  touch(record)
  settle(record)
  return record
end

-- Calls `f` with the waiters that have a place in a pool and other targets, in the order of arrival.
local function each_record(p, f)
  for _, id in ipairs(call('ZRANGE', p.k .. 'several', 0, -1)) do
    local node, ticket = string.match(id, '^(.*)|(.*)$')
    local record = record_of(node, ticket)
    if record then f(record) end
  end
end

-- Leaves a pool out, or takes it in again. Costs O(log n) for each waiter that has a place in it and another one.
local function set_skip(p, skip)
  p.skip, p.changed = skip, true
  if skip == 'yes' then each_record(p, widen) end
  each_record(p, settle)
end

-- The pool that serves a request now, with its account and the lease request; nil if it must wait. Skipped pools count only if no other one
-- has a slot or a place in its queue.
local function choose(targets, spread, preferred)
  if all_in_use() >= total then return nil end
  local slots, has_other = {}, false
  for i, target in ipairs(targets) do
    local p = by_name[target.pool]
    local can, account = can_serve(p, target.request, preferred)
    slots[i] = can and { pool = p, account = account or '', request = target.request } or false
    if p.skip ~= 'yes' and (can or has_place(p, target.request)) then has_other = true end
  end
  local best, share = nil, -INF
  for _, slot in ipairs(slots) do
    local p = slot and slot.pool
    if p and not (has_other and p.skip == 'yes') then
      if spread == 'order' then return slot end
      local all = math.min(p.global, in_rotation(p) * p.per)
      local free = all == 0 and 0 or (all - p.in_use) / all
      if free > share then best, share = slot, free end
    end
  end
  return best
end

-- Gives a slot; the first one after the time of a cooling probes the upstream. Returns the content of the grant.
local try_stated, refuse_tried, take_budgets, note_budgets
local function give(p, node, ticket, account, lease_request)
  local want = want_of(lease_request)
  given = given + 1
  local lease = { account = account, fence = given, model = 0 }
  if account ~= '' then
    lease.model, lease.reserved = take_models(p, account, want), take_budgets(p, account, want)
    count_given(p, account)
  end
  hold(p, node, ticket, lease)
  if account ~= '' then try_stated(p, account) end
  if lease.reserved then note_budgets(p, account) end
  -- Its cooling may have ended since the last look.
  if p.skip == 'yes' and p.till and p.till <= now and not p.probe then p.skip = 'probe' end
  if p.skip == 'probe' then
    p.probe = node .. '|' .. ticket
    set_skip(p, 'yes')
  end
  return grant_of(p, node, ticket, lease)
end

-- Serves waiters in order while there are free slots.
local function serve()
  if quiet > now then return end
  while all_in_use() < total do
    -- The pool and the queue with the earliest waiter that can be served now.
    local first, p, line, account = INF, nil, nil, nil
    for _, each in ipairs(pools) do
      if each.open and each.waiting > 0 and each.in_use < each.global then
        local its_line, its_account, number = next_line(each)
        if its_line and number < first then first, p, line, account = number, each, its_line, its_account end
      end
    end
    if p == nil then break end
    local lease_request, node = parts_of(line)
    local ticket = call('ZRANGE', p.k .. 'line:' .. line, 0, 0)[1]
    local record = record_of(node, ticket)
    local slot = choose(places_of(record, 'placed'), record.spread, record.preferred) or
      { pool = p, account = account or '', request = lease_request }
    leave_all(record)
    notify_grant(node, ticket, give(slot.pool, node, ticket, slot.account, slot.request))
  end
  refuse_tried()
end

-- Refuses the first waiters of a line as long as no account can serve them in time, whatever they need of it.
local function refuse(p, line)
  local lease_request, node = parts_of(line)
  while true do
    local ticket = call('ZRANGE', p.k .. 'line:' .. line, 0, 0)[1]
    if ticket == nil then return end
    local record = record_of(node, ticket)
    local refusal = hopeless(p, without_needs(lease_request), record.deadline)
    if not refusal then return end
    give_up(record, target_at(record, p), refusal)
  end
end

local function refuse_lines(p, is_meant)
  for _, index in ipairs(p.waiting > 0 and { 'lines', 'blocked' } or {}) do
    for _, line in ipairs(call('ZRANGE', p.k .. index, 0, -1)) do
      if is_meant(want_of(parts_of(line))) then refuse(p, line) end
    end
  end
end

local function refuse_pinned(p, account)
  refuse_lines(p, function(want) return want.account == account end)
end

-- Refuses the waiters for any account of a pool that cannot be served in time, and their places while the pool is skipped.
local function refuse_shared(p)
  if p.waiting == 0 or (p.open and p.spent == 0 and in_rotation(p) > 0) then return end
  each_record(p, widen)
  refuse_lines(p, function(want) return want.kind == 'A' end)
  each_record(p, function(record)
    local target = target_at(record, p)
    local refusal = target.state == 'parked' and hopeless(p, target.request, record.deadline)
    if refusal then give_up(record, target, refusal) end
  end)
end

-- Refuses the waiters of a pool that cannot be served in time, but for those for any account.
local function refuse_others(p)
  refuse_lines(p, function(want) return want.kind ~= 'A' end)
end

-- Puts an enabled account among those that cool, or that are to be tried, by its state.
local function arrange(p, account)
  local state, till = state_of(account)
  for kind, key in pairs({ cooling = 'cool', out = 'untried' }) do
    if state == kind and not account_of(account).disabled then
      call('ZADD', p.k .. key, till, account)
    else
      call('ZREM', p.k .. key, account)
    end
  end
  if state == 'ready' then enters(p, account) end
  place(p, account)
  -- Without it others may be in rotation no more, so that an account which is avoided serves.
  unblock(p)
end

-- Sets the state of an account apart from its budgets.
local function set_state(p, account, state, till)
  local a = changed_account(account)
  a.state, a.till = state, till == INF and 'inf' or till
  if till ~= INF then a.trying = nil end
  arrange(p, account)
end

local function set_enabled(p, account, enabled)
  if account_of(account).disabled == enabled then
    changed_account(account).disabled = not enabled or nil
    p.disabled, p.changed = p.disabled + (enabled and -1 or 1), true
    arrange(p, account)
    if not enabled then refuse_pinned(p, account) end
  else
    place(p, account)
  end
end

-- Takes an account out of rotation: until `till` (`cooling`), or until a probe at `till` (`out`).
-- Of a cooling account whose upstream wants no request until `stated`, one request gets a slot at `till`, and one an hour from then on.
local function suspend(p, account, state, till, stated)
  local a = changed_account(account)
  if not a.member then return end
  a.stated = state == 'cooling' and stated and stated > till and stated or 0
  set_state(p, account, state, till)
  refuse_pinned(p, account)
  refuse_shared(p)
  serve()
end

local function restore(p, account)
  local a = changed_account(account)
  if not a.member then return end
  a.stated = 0
  if a.state == 'ready' then return end
  set_state(p, account, 'ready', 0)
  serve()
end

-- Lets no other request than the one that was just granted use an account whose upstream wants none yet.
local tried = {}
try_stated = function(p, account)
  local stated = account_of(account).stated
  if stated == 0 then return end
  if stated <= now then
    changed_account(account).stated = 0
    return
  end
  set_state(p, account, 'cooling', math.min(stated, now + TRIED_AFTER))
  tried[#tried + 1] = { p, account }
end

-- Refuses the waiters of accounts that one request tries, as far as no account serves them in time.
refuse_tried = function()
  local all = tried
  tried = {}
  for _, one in ipairs(all) do
    refuse_pinned(one[1], one[2])
    refuse_shared(one[1])
  end
end

-- Says until when an account is out because a budget of it is used up; 0 once there is something left. `serve` must follow.
local function spend(p, account, till)
  local a = account_of(account)
  if not a.member or a.spent == till then return end
  changed_account(account).spent = till
  arrange(p, account)
  refuse_pinned(p, account)
  refuse_shared(p)
end

-- Says until when a pool serves no managed request because the budget of its upstream is used up; 0 once there is something left. `serve`
-- must follow.
local function spend_all(p, till)
  if p.spent == till then return end
  p.spent, p.changed = till, true
  refuse_others(p)
  refuse_shared(p)
end

-- Returns accounts to rotation whose cooling period has ended.
local function warm()
  for _, p in ipairs(pools) do
    local changes = p.spent > 0 and p.spent <= now
    if changes then spend_all(p, 0) end
    while true do
      local first = call('ZRANGE', p.k .. 'cool', 0, 0, 'WITHSCORES')
      if first[1] == nil or tonumber(first[2]) > now then break end
      changed_account(first[1]).spent = 0
      set_state(p, first[1], 'ready', 0)
      changes = true
    end
    for _, line in ipairs(p.waiting > 0 and call('ZRANGEBYSCORE', p.k .. 'blocked', '-inf', now) or {}) do
      release_line(p, line)
      changes = true
    end
    if changes then serve() end
  end
end

-- Assigns to this node the accounts that are due for a probe. They are not due again until it reports.
local function due()
  local accounts = {}
  for _, p in ipairs(pools) do
    for _, account in ipairs(call('ZRANGEBYSCORE', p.k .. 'untried', '-inf', now)) do
      set_state(p, account, 'out', INF)
      changed_account(account).trying = me
      call('SADD', K .. 'tasks:' .. me, account)
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

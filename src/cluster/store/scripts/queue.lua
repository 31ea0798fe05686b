-- The requests that hold and wait for slots: `poolQueue.ts` over Redis keys. A request holds at most one slot; the first one that
-- it can use is granted, and its other places go in the same script.

local function refusal(reason, till) return { reason, int(till and till - now or 0) } end

-- Gives a slot; the first one after the time of a cooling probes the upstream. `share` is what the request may use of budgets, if there are
-- any. Returns the fence.
local try_stated, refuse_tried
local function give(p, node, ticket, account, share)
  given = given + 1
  if account and account ~= '' then count_given(p, account) end
  hold(p, node, ticket, account or '', given)
  if account and account ~= '' then try_stated(p, account) end
  if B and account and account ~= '' then B.take(p, node, ticket, account, share) end
  -- Its cooling may have ended since the last look.
  if p.skip == 'yes' and p.till and p.till <= now and not p.probe then p.skip = 'probe' end
  if p.skip == 'probe' then
    p.probe = node .. '|' .. ticket
    S.set_skip(p, 'yes')
  end
  return int(given)
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
    local lease_request, node = string.match(line, '^(.*)|(.*)$')
    local ticket = call('ZRANGE', p.k .. 'line:' .. line, 0, 0)[1]
    local record = S and S.record_of(node, ticket)
    local share
    if record then
      local placed = {}
      for _, target in ipairs(record.targets) do
        if target[3] == 'placed' then placed[#placed + 1] = target end
      end
      p, account = unpack(S.choose(placed, record.spread) or { p, account })
      for _, target in ipairs(placed) do
        if target[1] == p.name then share = target[4] end
      end
      S.leave_all(record)
    elseif p == default then
      leave(node, ticket, lease_request)
    elseif call('ZSCORE', p.k .. 'line:' .. line, ticket) then
      -- A place without a waiter.
      quit(p, node, ticket, lease_request)
      p = nil
    else
      p = nil
    end
    if p then
      local fence = give(p, node, ticket, account, share)
      notify(node, 'grant ' .. ticket .. ' ' .. table.concat(grant_of(p, node, ticket, account or '', fence), ' '))
    end
  end
  refuse_tried()
end

-- Refuses waiters at the head of a queue that cannot be served in time.
local function refuse(p, line)
  local lease_request, node = string.match(line, '^(.*)|(.*)$')
  while true do
    local ticket = call('ZRANGE', p.k .. 'line:' .. line, 0, 0)[1]
    if ticket == nil then return end
    local record = S and S.record_of(node, ticket)
    local waits = not record and call('HGET', K .. 'tickets:' .. node, ticket)
    if record then
      local reason, till = hopeless(p, lease_request, record.deadline)
      if reason == nil then return end
      for _, target in ipairs(record.targets) do
        if target[1] == p.name then
          S.give_up(record, target, reason, till)
          break
        end
      end
    elseif waits and p == default then
      local reason, till = hopeless(p, lease_request, tonumber(string.match(waits, '^%S+ (%S+)')))
      if reason == nil then return end
      leave(node, ticket, lease_request)
      notify(node, 'refuse ' .. ticket .. ' ' .. table.concat(refusal(reason, till), ' '))
    else
      -- A place without a waiter.
      quit(p, node, ticket, lease_request)
    end
  end
end

local function refuse_pinned(p, account)
  if call('HEXISTS', p.k .. 'pins', account) == 0 then return end
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do refuse(p, line_of('P:' .. account, node)) end
end

local function refuse_shared(p)
  if p.waiting == 0 or (p.open and p.spent == 0 and in_rotation(p) > 0) then return end
  if S then S.each_record(p, S.widen) end
  for _, line in ipairs(call('ZRANGE', p.k .. 'lines', 0, -1)) do
    if string.sub(line, 1, 1) == 'A' then refuse(p, line) end
  end
  if S then S.refuse_parked(p) end
end

-- Sets the state of an account apart from its budgets; what follows of both counts.
local function set_state(p, account, state, till)
  local spent = budgeted and state ~= 'out' and tonumber(call('HGET', p.k .. 'spent', account))
  if spent then
    call('HSET', p.k .. 'beneath', account, state .. ' ' .. int(till))
    state, till = 'cooling', math.max(spent, till)
  elseif budgeted then
    call('HDEL', p.k .. 'beneath', account)
  end
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
  if state == 'ready' then enters(p, account) end
  place(p, account)
end

local function set_enabled(p, account, enabled)
  local state, till = health_of(p, account)
  if is_enabled(p, account) ~= enabled then
    call(enabled and 'SREM' or 'SADD', p.k .. 'disabled', account)
    set_state(p, account, state, till)
    if not enabled then refuse_pinned(p, account) end
  else
    place(p, account)
  end
end

-- Takes an account out of rotation: until `till` (`cooling`), or until a probe at `till` (`out`).
-- Of a cooling account whose upstream wants no request until `stated`, one request gets a slot at `till`, and one an hour from then on.
local function suspend(p, account, state, till, stated)
  if not is_member(p, account) then return end
  if state == 'cooling' and stated and stated > till then
    call('HSET', p.k .. 'stated', account, int(stated))
  else
    call('HDEL', p.k .. 'stated', account)
  end
  set_state(p, account, state, till)
  refuse_pinned(p, account)
  refuse_shared(p)
  serve()
end

local function restore(p, account)
  if not is_member(p, account) then return end
  call('HDEL', p.k .. 'stated', account)
  if health_of(p, account) == 'ready' then return end
  set_state(p, account, 'ready', 0)
  serve()
end

-- Until when the upstream of an account wants no request; 0 if that is no later than the end of its cooling.
local function stated_of(p, account) return tonumber(call('HGET', p.k .. 'stated', account)) or 0 end

-- Lets no other request than the one that was just granted use an account whose upstream wants none yet.
local tried = {}
try_stated = function(p, account)
  local stated = stated_of(p, account)
  if stated == 0 then return end
  if stated <= now then
    call('HDEL', p.k .. 'stated', account)
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
  if not is_member(p, account) or (tonumber(call('HGET', p.k .. 'spent', account)) or 0) == till then return end
  if till > 0 then call('HSET', p.k .. 'spent', account, int(till)) else call('HDEL', p.k .. 'spent', account) end
  set_state(p, account, health_of(p, account))
  refuse_pinned(p, account)
  refuse_shared(p)
end

-- Says until when a pool serves no managed request because the budget of its upstream is used up; 0 once there is something left. `serve`
-- must follow.
local function spend_all(p, till)
  if p.spent == till then return end
  p.spent = till
  call('HSET', p.k .. 'sum', 'spent', int(till))
  for _, account in ipairs(call('HKEYS', p.k .. 'pins')) do refuse_pinned(p, account) end
  refuse_shared(p)
end

-- Returns accounts to rotation whose cooling period has ended.
local function warm()
  for _, p in ipairs(pools) do
    if p.spent > 0 and p.spent <= now then spend_all(p, 0) end
    while true do
      local first = call('ZRANGE', p.k .. 'cool', 0, 0, 'WITHSCORES')
      if first[1] == nil or tonumber(first[2]) > now then break end
      if budgeted then call('HDEL', p.k .. 'spent', first[1]) end
      set_state(p, first[1], 'ready', 0)
    end
    if multi_pool then serve() end
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

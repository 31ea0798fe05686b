-- Requests a lease. Arguments: ticket, lease request, timeout, the alternative request for an immediate refusal (or for an
-- account that is not ready), and the request's style. A request that names pools has a JSON array besides: `order` or `even`,
-- whether it waits at the first pool alone (1), and pools with lease requests: its targets in order, and alternative ones. While there are budgets, a
-- target has what the request may use of them besides (`budgets.lua`). That of a
-- sticky conversation has its keys besides, separated by spaces, and `1` if it prefers the target of the last turn. A request that prefers accounts has these
-- after the two: each with its pool and `1` if it prefers the target too, in order. A turn of a conversation has the key behind them by which
-- the turn before may have left something (`release.lua`).
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket, lease_request, patience, instead, style = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]

local holder, account, fence = lease_of(me, ticket)
if holder then return finish({ 'granted', unpack(grant_of(holder, me, ticket, account, fence)) }) end
local record = S and S.record_of(me, ticket)
if record then return finish({ 'waiting', int(record.number), record.holding and '1' or '0' }) end
local waits = call('HGET', K .. 'tickets:' .. me, ticket)
if waits then return finish({ 'waiting', string.match(waits, '^%S+') }) end

local function refused(reason, till) return { 'refused', unpack(refusal(reason, till)) } end

-- During the quiet period of an empty store all requests wait, because returning nodes bring their leases.
local function request(wanted)
  if quiet > now and (default.waiting < default.queue or revision == '0') then
    numbered = numbered + 1
    join(me, ticket, wanted, numbered, now + patience, now, style)
    return { 'waiting', int(numbered) }
  end
  if default.leaving then return refused('Unavailable') end
  local reason, till = hopeless(default, wanted, now + patience)
  if reason then return refused(reason, till) end
  if quiet <= now and all_in_use() < total then
    local can, given_account = can_serve(default, wanted)
    if can then
      local given_fence = give(default, me, ticket, given_account)
      return { 'granted', unpack(grant_of(default, me, ticket, given_account or '', given_fence)) }
    end
  end
  if not has_place(default, wanted) then
    reason, till = hopeless(default, wanted, now)
    return refused(reason or 'Full', till)
  end
  numbered = numbered + 1
  join(me, ticket, wanted, numbered, now + patience, now, style)
  return { 'waiting', int(numbered) }
end

-- Whether the request asks for another account than this one; each of its targets avoids the same ones.
local function avoids(account)
  local wanted = lease_request
  if ARGV[9] and ARGV[9] ~= '' then wanted = cjson.decode(ARGV[9])[3][1][2] end
  local _, set = avoided(wanted)
  return set[account]
end

local last_pool
if ARGV[10] then
  local _, pool_name, account = sticky_of(ARGV[10])
  if account then
    preferred = account
    last_pool = ARGV[11] == '1' and pool_name
  end
end

for pool_name, account, with_target in string.gmatch(ARGV[12] or '', '(%S+) (%S+) (%d)') do
  local p = by_name[pool_name]
  if p and call('ZSCORE', p.k .. 'spare', account) and not avoids(account) then
    preferred, last_pool = account, with_target == '1' and pool_name
    break
  end
end

local ask, is_ready = request, function() return default.spent == 0 and state_of(default, string.sub(lease_request, 3)) == 'ready' end
if ARGV[9] and ARGV[9] ~= '' then
  load_multi_pool()

  -- Waits at targets; `holds`: at the first one alone. Returns nil without a place at any.
  local function wait_at(targets, spread, holds)
    numbered = numbered + 1
    local only = targets[1]
    if #targets == 1 and only[1] == 'default' and not only[4] then
      if not has_place(default, only[2]) and (quiet <= now or revision ~= '0') then return nil end
      join(me, ticket, only[2], numbered, now + patience, now, style)
      return { 'waiting', int(numbered) }
    end
    local waiter = {
      id = me .. '|' .. ticket, node = me, ticket = ticket, number = numbered, deadline = now + patience, since = now,
      style = style, spread = spread, holding = holds, targets = targets
    }
    S.records[waiter.id] = waiter
    for i, target in ipairs(targets) do
      local p = by_name[target[1]]
      if holds and i > 1 then
        target[3] = 'later'
      elseif has_place(p, target[2]) or (quiet > now and revision == '0') then
        S.join_place(waiter, target)
      else
        target[3] = 'gone'
      end
    end
    if not S.has_places(waiter) then
      S.records[waiter.id] = false
      return nil
    end
    call('ZADD', K .. 'queue', numbered, waiter.id)
    S.touch(waiter)
    S.settle(waiter)
    return { 'waiting', int(numbered), waiter.holding and '1' or '0' }
  end

  local function rotates(p, wanted)
    local kind = string.sub(wanted, 1, 1)
    if kind == 'D' then return true end
    if p.spent > 0 then return false end
    if kind == 'A' then return in_rotation(p) > 0 end
    return state_of(p, string.sub(wanted, 3)) == 'ready'
  end

  local function request_several(wanted, spread, holds)
    local able, reason, till = {}, nil, nil
    for _, target in ipairs(wanted) do
      local p = quiet > now and S.pool_named(target[1]) or S.configured(target[1])
      if p then
        local why, when
        if quiet <= now then why, when = hopeless(p, target[2], now + patience) end
        if why then
          reason, till = S.sooner_retry(reason, till, why, when)
        else
          able[#able + 1] = { target[1], target[2], 'gone', target[3] }
        end
      end
    end
    if #able == 0 then return refused(reason or 'Unavailable', till) end
    local first, first_wish = by_name[able[1][1]], able[1][2]
    holds = holds and #able > 1 and able[1][1] == wanted[1][1] and first.skip ~= 'yes' and rotates(first, first_wish) and
      not (all_in_use() < total and can_serve(first, first_wish)) and has_place(first, first_wish)
    local slot = not holds and quiet <= now and S.choose(able, spread)
    if slot then
      local p, given_account = slot[1], slot[2]
      local probes = p.skip == 'probe'
      local share
      for _, target in ipairs(able) do
        if target[1] == p.name then share = target[4] end
      end
      local given_fence = give(p, me, ticket, given_account, share)
      preferred = nil
      -- Waiters that have skipped pools alone may use them now, and those of an account that is now at its budget others.
      if probes or B then serve() end
      return { 'granted', unpack(grant_of(p, me, ticket, given_account or '', given_fence)) }
    end
    local reply = wait_at(able, spread, holds)
    if reply then return reply end
    for _, target in ipairs(able) do
      local why, when = hopeless(by_name[target[1]], target[2], now)
      if why == nil then return refused('Full') end
      reason, till = S.sooner_retry(reason, till, why, when)
    end
    return refused(reason, till)
  end

  local choice = cjson.decode(ARGV[9])
  for i, target in ipairs(choice[3]) do
    if i > 1 and target[1] == last_pool then
      table.insert(choice[3], 1, table.remove(choice[3], i))
      choice[1], choice[2] = 'order', 0
    end
  end
  lease_request, instead = choice[3], choice[4] and #choice[4] > 0 and choice[4] or ''
  ask = function(wanted) return request_several(wanted, choice[1], choice[2] == 1) end
  is_ready = function()
    local p = S.configured(lease_request[1][1])
    return p and p.spent == 0 and state_of(p, string.sub(lease_request[1][2], 3)) == 'ready'
  end
end
local reply
if instead ~= '' and quiet <= now and not is_ready() then
  reply = ask(instead)
else
  reply = ask(lease_request)
  if instead ~= '' and quiet <= now and reply[1] == 'refused' then reply = ask(instead) end
end
-- What the turn before has left is the last field of a grant, and of the reply to a waiter.
local memory = ARGV[13] and reply[1] ~= 'refused' and call('HGET', K .. 'threads', ARGV[13])
if memory then
  local place = reply[1] == 'granted' and 14 or 4
  for i = #reply + 1, place - 1 do reply[i] = '' end
  reply[place] = memory
end
return finish(reply)

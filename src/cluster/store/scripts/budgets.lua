-- The budgets of accounts and upstreams: `accounts/budgets.ts` over Redis keys, with the limits of each subject (`needs.lua`). A lease has its
-- reservations.

-- When the last window of a budget that is used up ends; 0 while all have something left.
local function spent_until(subject)
  local limits = limits_of(subject)
  return limits and full_until(limits, { key = key_of(subject), share = { 1, 0, 1 }, letters = '' }) or 0
end

-- Notes that what is used of the budgets of an account and its upstream has changed: they are out of rotation while one is used up. `serve`
-- must follow.
note_budgets = function(p, account)
  spend(p, account, spent_until(account))
  spend_all(p, spent_until('@' .. p.name))
  unblock(p, not limits_of('@' .. p.name) and account or nil)
end

-- Reserves what a lease may use of the budgets of its account, which have room for it, and of its upstream; nil without budgets.
take_budgets = function(p, account, want)
  local all = {}
  for i, one in ipairs(reservations(p, account, want)) do
    all[i] = one.reserved
    count_usage(1, one.reserved)
  end
  return #all > 0 and all or nil
end

-- What is used of the budgets of a subject, as `keys.lua` replies; empty without budgets.
local function used_of_budgets(subject)
  if not limits_of(subject) then return '' end
  return table.concat(append_windows({}, key_of(subject)), ' ')
end

-- Replaces what a lease of this node, which ends, has reserved by what it has used. Returns the time, and what is used of the budgets of its
-- account and its upstream.
local function settle_budgets(ticket, counted, used)
  local p, lease = lease_of(me, ticket)
  local account = p and lease.account or ''
  if account == '' then return {} end
  if lease.reserved then
    for _, reserved in ipairs(lease.reserved) do settle_usage(reserved, counted, used) end
  elseif counted then
    -- The data is older than the lease, or the budgets are newer.
    for _, subject in ipairs({ '@' .. p.name, account }) do
      if limits_of(subject) then count_usage(1, { key = key_of(subject), time = now, share = used, letters = '' }) end
    end
  end
  note_budgets(p, account)
  return { int(now), used_of_budgets(account), used_of_budgets('@' .. p.name) }
end

-- Applies other budgets: pairs of a subject and its limits.
local function configure_budgets(list)
  local had = budgeted
  budgeted, known_limits = #list > 0, {}
  call('DEL', K .. 'usage:budgets')
  if budgeted then call('HSET', K .. 'lim', 'budgets', '1') else call('HDEL', K .. 'lim', 'budgets') end
  for _, one in ipairs(list) do call('HSET', K .. 'usage:budgets', one[1], cjson.encode(one[2])) end
  if not had and not budgeted then return end
  budgeted = true
  for _, p in ipairs(pools) do
    for _, account in ipairs(call('SMEMBERS', p.k .. 'roster')) do note_budgets(p, account) end
    spend_all(p, spent_until('@' .. p.name))
  end
  budgeted = #list > 0
end

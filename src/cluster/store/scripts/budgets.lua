-- The budgets of accounts and upstreams: `accounts/budgets.ts` over Redis keys. `usage:budgets` has the limits of each subject; a subject is
-- the name of an account, or `@` and that of an upstream. What is used of them is beside the usage of business keys (`windows.lua`). A lease
-- holds its reservations in `usage:spends:<node>`; or, with too little left, `a` or `u` (of the account or the upstream) and when that window
-- ends. A target has a share as reservations have one, and behind it the share of strict limits if the request is bounded.
-- The key of a subject among those of `windows.lua`, which are ids of business keys else.
local function key_of(subject) return string.sub(subject, 1, 1) == '@' and subject or '#' .. subject end

local known_limits = {}
local function limits_of(subject)
  if known_limits[subject] == nil then
    local text = call('HGET', K .. 'usage:budgets', subject)
    known_limits[subject] = text and cjson.decode(text) or false
  end
  return known_limits[subject]
end

-- When the last window of a budget that is used up ends; 0 while all have something left.
local function spent_until(subject)
  local limits = limits_of(subject)
  return limits and full_until(limits, { key = key_of(subject), share = { 1, 0, 1 }, letters = '' }) or 0
end

-- Takes an account and its upstream out of rotation while a budget is used up, or back into it. `serve` must follow.
local function note_budgets(p, account)
  spend(p, account, spent_until(account))
  spend_all(p, spent_until('@' .. p.name))
end

-- Reserves what a lease may use of the budgets of its account and upstream: all of it, or nothing.
take_budgets = function(p, node, ticket, account, share)
  local plain, strict = { 0, 0, 0 }, nil
  if share then plain = { share[1], share[2], share[3] } end
  if share and share[4] then strict = { share[4], share[5], share[6] } end
  local all, tickets = {}, K .. 'usage:spends:' .. node
  -- The upstream comes first: a lease that it has no room for fits none of its accounts.
  for _, subject in ipairs({ '@' .. p.name, account }) do
    local limits = limits_of(subject)
    if limits then
      local letters = ''
      for _, limit in ipairs(limits) do
        if strict and limit[6] == 1 then letters = letters .. limit[1] end
      end
      local reserved = { key = key_of(subject), time = now, share = plain, letters = letters, strict = strict or plain }
      local till = full_until(limits, reserved)
      if till > 0 then
        call('HSET', tickets, ticket, (subject == account and 'a' or 'u') .. int(till))
        return
      end
      all[#all + 1] = reserved
    end
  end
  if #all == 0 then return end
  for _, reserved in ipairs(all) do count_usage(1, reserved) end
  call('HSET', tickets, ticket, cjson.encode(all))
  note_budgets(p, account)
end

-- What is used of the budgets of a subject, as `keys.lua` replies; empty without budgets.
local function used_of_budgets(subject)
  if not limits_of(subject) then return '' end
  return table.concat(append_windows({}, key_of(subject)), ' ')
end

-- Replaces what a lease of this node has reserved by what it has used. Returns the time, and what is used of the budgets of its account and its
-- upstream.
local function settle_budgets(ticket, counted, used)
  local p, account = lease_of(me, ticket)
  if not p or account == '' then return {} end
  local held = call('HGET', K .. 'usage:spends:' .. me, ticket)
  if held and string.sub(held, 1, 1) ~= '[' then return {} end
  if held then
    for _, reserved in ipairs(cjson.decode(held)) do settle_usage(reserved, counted, used) end
  elseif counted then
    -- The data is older than the lease, or the budgets are newer.
    for _, subject in ipairs({ '@' .. p.name, account }) do
      if limits_of(subject) then count_usage(1, { key = key_of(subject), time = now, share = used, letters = '' }) end
    end
  end
  call('HDEL', K .. 'usage:spends:' .. me, ticket)
  note_budgets(p, account)
  return { int(now), used_of_budgets(account), used_of_budgets('@' .. p.name) }
end

-- The word of a lease that its budgets have too little left, as a grant has it; empty without.
over_budgets = function(node, ticket)
  local held = call('HGET', K .. 'usage:spends:' .. node, ticket)
  if not held or string.sub(held, 1, 1) == '[' then return '' end
  return string.sub(held, 1, 1) .. int(math.max(0, tonumber(string.sub(held, 2)) - now))
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

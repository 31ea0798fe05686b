-- The budgets of accounts and upstreams: `accounts/budgets.ts` over Redis keys. `usage:budgets` has the limits of each subject, a JSON array
-- of window, requests, tokens, units, nanos (-1 for none) and whether it is strict (1); a subject is the name of an account, or `@` and that of an
-- upstream. What is used of them is beside the usage of business keys (`windows.lua`). A lease holds its reservation in `usage:spends:<node>`: a JSON
-- array of its time, its share, and its subjects with the letters of their strict windows; or, with too little left, `a` or `u` (of the account or
-- the upstream) and when that window ends. A share is tokens, units and nanos, and the same of strict limits if the request is bounded.
--
-- Stores without budgets do without, so these functions are made on demand. The text within is not indented.
local function load_budgets()
if B then return end
load_windows()

-- The key of a subject among those of `windows.lua`, which are ids of business keys else.
local function key_of(subject) return string.sub(subject, 1, 1) == '@' and subject or '#' .. subject end

local known = {}
local function limits_of(subject)
  if known[subject] == nil then
    local text = call('HGET', K .. 'usage:budgets', subject)
    known[subject] = text and cjson.decode(text) or false
  end
  return known[subject]
end

local function or_nil(number) return number >= 0 and number or nil end

-- When the last window of a budget that is used up ends; 0 while all have something left.
local function spent_until(subject)
  local limits, till = limits_of(subject), 0
  if not limits then return 0 end
  local counts = W.used_of(key_of(subject))
  for _, limit in ipairs(limits) do
    local letter, requests, tokens, units, nanos = unpack(limit)
    local count = counts[letter]
    if (requests >= 0 and count[1] >= requests) or (tokens >= 0 and count[2] >= tokens) or
      (units >= 0 and (count[3] > units or (count[3] == units and count[4] >= nanos))) then till = math.max(till, W.end_of(letter)) end
  end
  return till
end

-- Takes an account and its upstream out of rotation while a budget is used up, or back into it. `serve` must follow.
local function note(p, account)
  spend(p, account, spent_until(account))
  spend_all(p, spent_until('@' .. p.name))
end

-- Reserves what a lease may use of the budgets of its account and upstream: all of it, or nothing.
local function take(p, node, ticket, account, share)
  share = share or { 0, 0, 0 }
  local subjects, tickets = {}, K .. 'usage:spends:' .. node
  -- The upstream comes first: a lease that it has no room for fits none of its accounts.
  for _, subject in ipairs({ '@' .. p.name, account }) do
    local limits = limits_of(subject)
    if limits then
      local counts, strict, till = W.used_of(key_of(subject)), '', 0
      for _, limit in ipairs(limits) do
        local letter, requests, tokens, units, nanos, is_strict = unpack(limit)
        local own = { share[1], share[2], share[3] }
        if is_strict == 1 and share[4] then
          own, strict = { share[4], share[5], share[6] }, strict .. letter
        end
        if W.exceeds(counts, own, letter, or_nil(requests), or_nil(tokens), or_nil(units), nanos) then
          till = math.max(till, W.end_of(letter))
        end
      end
      if till > 0 then
        call('HSET', tickets, ticket, (subject == account and 'a' or 'u') .. int(till))
        return
      end
      subjects[#subjects + 1] = { subject, strict }
    end
  end
  if #subjects == 0 then return end
  for _, subject in ipairs(subjects) do
    local key, strict = key_of(subject[1]), subject[2] ~= '' and subject[2] or nil
    W.add(key, now, 1, share[1], share[2], share[3], strict, share[4], share[5], share[6])
    W.touch(key, now)
  end
  call('HSET', tickets, ticket, cjson.encode({ now, share, subjects }))
  note(p, account)
end

-- What is used of the budgets of a subject, as `keys.lua` replies; empty without budgets.
local function told(subject)
  if not limits_of(subject) then return '' end
  return table.concat(W.append_windows({}, key_of(subject)), ' ')
end

-- Replaces what a lease of this node has reserved by what it has used. Returns the time, and what is used of the budgets of its account and its
-- upstream.
local function settle(ticket, counted, tokens, units, nanos)
  local p, account = lease_of(me, ticket)
  if not p or account == '' then return {} end
  local held = call('HGET', K .. 'usage:spends:' .. me, ticket)
  if held and string.sub(held, 1, 1) ~= '[' then return {} end
  if not counted then tokens, units, nanos = 0, 0, 0 end
  local function count(subject, time, requests, share, strict)
    local most = strict ~= '' and strict or nil
    W.add(key_of(subject), time, requests, tokens - share[1], units - share[2], nanos - share[3], most,
      most and tokens - share[4], most and units - share[5], most and nanos - share[6])
  end
  if held then
    local time, share, subjects = unpack(cjson.decode(held))
    for _, subject in ipairs(subjects) do count(subject[1], time, counted and 0 or -1, share, subject[2]) end
  elseif counted then
    -- The data is older than the lease, or the budgets are newer.
    for _, subject in ipairs({ '@' .. p.name, account }) do
      if limits_of(subject) then count(subject, now, 1, { 0, 0, 0 }, '') end
    end
  end
  call('HDEL', K .. 'usage:spends:' .. me, ticket)
  note(p, account)
  return { int(now), told(account), told('@' .. p.name) }
end

-- The word of a lease that its budgets have too little left, as a grant has it; empty without.
local function over(node, ticket)
  local held = call('HGET', K .. 'usage:spends:' .. node, ticket)
  if not held or string.sub(held, 1, 1) == '[' then return '' end
  return string.sub(held, 1, 1) .. int(math.max(0, tonumber(string.sub(held, 2)) - now))
end

-- Applies other budgets: pairs of a subject and its limits.
local function configure(list)
  local had = budgeted
  budgeted, known = #list > 0, {}
  call('DEL', K .. 'usage:budgets')
  if budgeted then call('HSET', K .. 'lim', 'budgets', '1') else call('HDEL', K .. 'lim', 'budgets') end
  for _, one in ipairs(list) do call('HSET', K .. 'usage:budgets', one[1], cjson.encode(one[2])) end
  if not had and not budgeted then return end
  budgeted = true
  for _, p in ipairs(pools) do
    for _, account in ipairs(call('SMEMBERS', p.k .. 'roster')) do note(p, account) end
    spend_all(p, spent_until('@' .. p.name))
  end
  budgeted = #list > 0
end

B = { take = take, settle = settle, over = over, told = told, configure = configure }
end

if budgeted then load_budgets() end

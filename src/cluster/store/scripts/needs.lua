-- What a request needs of an account beside a slot: `placement/needs.ts` over Redis keys. It needs one of its models that the server takes at
-- present, and room in the budgets of the account and its upstream.
--
-- `usage:budgets` has the limits of each subject; a subject is the name of an account, or `@` and that of an upstream. What is used of them is
-- beside the usage of business keys (`windows.lua`). `quota:<account>` has the windows of an account's quota (`domain/quota.ts`), and
-- `paused` of a pool its accounts that are out for a model, by when the last of their windows has room.

-- A part of a window or a request, which is encoded as in URLs.
local function decoded(text)
  return (string.gsub(text, '%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end))
end

local function numbers_of(text)
  local numbers = {}
  for number in string.gmatch(text, '[^,]+') do numbers[#numbers + 1] = tonumber(number) end
  return numbers
end

-- What a lease request asks for: its kind, the account that it is pinned to, the accounts that it avoids as a list and as a set; and what it
-- needs: its models, what it reserves of budgets and of strict ones, and whether it leaves to others what upstreams reserve for them.
local wants = {}
local function want_of(lease_request)
  if wants[lease_request] then return wants[lease_request] end
  local which, models, share, class = string.match(lease_request .. ' - - 0', '^(%S+) (%S+) (%S+) (%S+)')
  local kind, names = string.match(which, '^(%a):?(.*)$')
  local want = { kind = kind, account = kind == 'P' and names or nil, list = {}, avoids = {}, models = {}, is_background = class == '1' }
  for account in string.gmatch(kind == 'A' and names or '', '[^,]+') do
    want.list[#want.list + 1] = account
    want.avoids[account] = true
  end
  for id, name, till in string.gmatch(models, '([^,;]+),([^,;]+),([^,;]+)') do
    want.models[#want.models + 1] = { id = decoded(id), name = decoded(name), till = tonumber(till) }
  end
  if share ~= '-' then
    local plain, strict = string.match(share .. ';', '^([^;]*);([^;]*)')
    want.share, want.strict = numbers_of(plain), strict ~= '' and numbers_of(strict) or nil
  end
  want.has_needs = #want.models > 0 or want.share ~= nil
  wants[lease_request] = want
  return want
end

-- The lease request without what it needs.
local function without_needs(lease_request) return string.match(lease_request, '^%S+') end

-- The windows of an account's quota. `said` is the text of one up to the time at which it was seen.
local known_windows = {}
local function windows_of(account)
  if known_windows[account] == nil then
    local windows, all = {}, call('HGETALL', K .. 'quota:' .. account)
    for i = 1, #all, 2 do
      local name, model = string.match(all[i], '^([^,]*),(.*)$')
      local said, used, resets, status, seen, room =
        string.match(all[i + 1], '^(([^,]*),[^,]*,[^,]*,([^,]*),([^,]*),)([^,]*),(.*)$')
      windows[#windows + 1] = {
        key = all[i], name = decoded(name), model = decoded(model), said = said, used = tonumber(used), resets = tonumber(resets),
        status = status, seen = tonumber(seen), room = tonumber(room)
      }
    end
    known_windows[account] = windows
  end
  return known_windows[account]
end

-- The accounts of a pool that are out for a model, as a set.
local known_pauses = {}
local function paused(p)
  if known_pauses[p.name] == nil then
    known_pauses[p.name] = {}
    for _, account in ipairs(call('ZRANGEBYSCORE', p.k .. 'paused', '(' .. int(now), 'inf')) do
      known_pauses[p.name][account] = true
    end
  end
  return known_pauses[p.name]
end

-- Whether a window of models is used up.
local function is_used_up(window) return window.model ~= '' and window.status == 'exhausted' and window.room > now end

-- Notes that the windows of an account have changed.
local function note_windows(p, account)
  known_windows[account], known_pauses[p.name] = nil, nil
  local till = 0
  for _, window in ipairs(windows_of(account)) do
    if is_used_up(window) then till = math.max(till, window.room) end
  end
  if till > 0 then call('ZADD', p.k .. 'paused', till, account) else call('ZREM', p.k .. 'paused', account) end
end

-- Whether a window counts requests for a model. Of classes of models it names a part of their names.
local function counts_model(window, model)
  if window.model == '' or window.model == model.id then return true end
  return string.find(window.name, '^%d+[dhm]_') ~= nil and
    (string.find(model.name, window.model, 1, true) or string.find(model.id, window.model, 1, true)) ~= nil
end

-- Until when a window leaves nothing but a reserve. One that refills steadily is used less by and by.
local function reserved_until(window, reserve)
  local most = 1 - reserve
  if reserve == 0 or window.used < most or window.resets <= now then return 0 end
  if window.room >= window.resets or window.used == 0 then return window.resets end
  return math.ceil(window.resets - most / window.used * (window.resets - window.seen))
end

-- Until when an account is out for a model of a request; 0 while it serves the model. What its server said an hour ago is tried by one request.
local function model_until(p, account, model, want)
  local till, reserve = model.till, want.is_background and p.reserve or 0
  for _, window in ipairs((reserve > 0 or paused(p)[account]) and windows_of(account) or {}) do
    if counts_model(window, model) then
      if is_used_up(window) then till = math.max(till, math.min(window.room, window.seen + TRIED_AFTER)) end
      till = math.max(till, reserved_until(window, reserve))
    end
  end
  return till > now and till or 0
end

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

-- What a lease reserves of the budgets of its account and upstream, each with its limits. A request that strict ones cannot bound reserves
-- nothing: its node refuses it.
local function reservations(p, account, want)
  local all = {}
  for _, subject in ipairs(budgeted and want.share and { '@' .. p.name, account } or {}) do
    local limits, letters = limits_of(subject), ''
    for _, limit in ipairs(limits or {}) do
      local letter, _, tokens, units, _, strict = unpack(limit)
      if strict == 1 and (tokens >= 0 or units >= 0) then letters = letters .. letter end
    end
    if letters ~= '' and not want.strict then return {} end
    if limits then
      local reserved = { key = key_of(subject), time = now, share = want.share, letters = letters, strict = want.strict or want.share }
      all[#all + 1] = { limits = limits, reserved = reserved }
    end
  end
  return all
end

-- When an account suits a request: 0 for now. `NEVER` is added to the time of one that never suits it.
local function suits_at(p, account, want)
  local till = #want.models > 0 and INF or 0
  for _, model in ipairs(want.models) do till = math.min(till, model_until(p, account, model, want)) end
  for _, one in ipairs(reservations(p, account, want)) do till = math.max(till, full_until(one.limits, one.reserved)) end
  return till
end

-- Whether a request may suit one account of a pool and not another one.
local function is_picky(p, want)
  return (budgeted and want.share ~= nil) or (#want.models > 0 and ((want.is_background and p.reserve > 0) or next(paused(p)) ~= nil))
end

-- The number of the model for which an account serves a request, of those that the request names; 0 without any. While the account is out
-- for one of them, the request is the only one for an hour that tries it.
local function take_models(p, account, want)
  local chosen
  for i, model in ipairs(want.models) do
    if not chosen and model_until(p, account, model, want) == 0 then chosen = i end
  end
  for _, window in ipairs(paused(p)[account] and windows_of(account) or {}) do
    local is_tried = false
    for _, model in ipairs(want.models) do is_tried = is_tried or counts_model(window, model) end
    if is_tried and is_used_up(window) then
      call('HSET', K .. 'quota:' .. account, window.key, window.said .. int(now) .. ',' .. int(window.room))
      window.seen = now
    end
  end
  return chosen or (#want.models > 0 and 1 or 0)
end

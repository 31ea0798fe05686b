-- What a request needs of an account beside a slot: `placement/needs.ts` over Redis keys. It needs one of its models that the server takes at
-- present, and room in the budgets of the account and its upstream.
--
-- `usage:budgets` has the limits of each subject; a subject is the name of an account, or `@` and that of an upstream. What is used of them is
-- beside the usage of business keys (`windows.lua`). `quota:<account>` has the windows of an account's quota (`domain/quota.ts`).
--
-- The kind of a window is `=` and the id of its model, or `~` and what is a part of the names of a class of models. A pool has the kinds of its
-- pauses in `pauses`, and in `paused:<kind>` the accounts whose windows of the kind are used up, by when one request may use them.

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
  for id, name, till, failed in string.gmatch(models, '([^,;]+),([^,;]+),([^,;]+),([^,;]+)') do
    want.models[#want.models + 1] = {
      key = id .. ',' .. name, id = decoded(id), name = decoded(name), till = tonumber(till), failed = failed == '1' and #want.list > 0
    }
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

-- The windows of an account's quota; the kind of one of the whole account is nil. `said` is the text of one up to the time at which it was seen.
local known_windows = {}
local function windows_of(account)
  if known_windows[account] == nil then
    local windows, all = {}, call('HGETALL', K .. 'quota:' .. account)
    for i = 1, #all, 2 do
      local name, model = string.match(all[i], '^([^,]*),(.*)$')
      local said, used, resets, status, seen, room =
        string.match(all[i + 1], '^(([^,]*),[^,]*,[^,]*,([^,]*),([^,]*),)([^,]*),(.*)$')
      windows[#windows + 1] = {
        key = all[i], kind = model ~= '' and (string.find(name, '^%d+[dhm]_') and '~' or '=') .. decoded(model) or nil, said = said,
        used = tonumber(used), resets = tonumber(resets), status = status, seen = tonumber(seen), room = tonumber(room)
      }
    end
    known_windows[account] = windows
  end
  return known_windows[account]
end

-- Whether a window counts requests for a model.
local function counts_model(kind, model)
  local named = kind and string.sub(kind, 2)
  if not kind or named == model.id then return true end
  return string.sub(kind, 1, 1) == '~' and
    (string.find(model.name, named, 1, true) or string.find(model.id, named, 1, true)) ~= nil
end

local known_pauses = {}
local function kinds_of(p)
  known_pauses[p.name] = known_pauses[p.name] or { kinds = call('SMEMBERS', p.k .. 'pauses'), by_model = {} }
  return known_pauses[p.name].kinds
end

-- The accounts of a pool that are out for a model, with the times.
local function paused_for(p, model)
  local kinds, by_model = kinds_of(p), known_pauses[p.name].by_model
  if by_model[model.key] == nil then
    local found = {}
    for _, kind in ipairs(kinds) do
      local all = counts_model(kind, model) and call('ZRANGE', p.k .. 'paused:' .. kind, '(' .. int(now), 'inf', 'BYSCORE', 'WITHSCORES') or {}
      for i = 1, #all, 2 do found[all[i]] = math.max(found[all[i]] or 0, tonumber(all[i + 1])) end
    end
    by_model[model.key] = found
  end
  return by_model[model.key]
end

-- Whether a window of models is used up.
local function is_used_up(window) return window.kind and window.status == 'exhausted' and window.room > now end

-- Notes that the windows of an account have changed. What its server said an hour ago is tried by one request.
local function note_windows(p, account)
  known_windows[account], known_pauses[p.name] = nil, nil
  local out = {}
  for _, window in ipairs(windows_of(account)) do
    if is_used_up(window) then out[window.kind] = math.max(out[window.kind] or 0, math.min(window.room, window.seen + TRIED_AFTER)) end
  end
  for kind, till in pairs(out) do
    call('SADD', p.k .. 'pauses', kind)
    call('ZADD', p.k .. 'paused:' .. kind, till, account)
  end
  for _, kind in ipairs(kinds_of(p)) do
    if not out[kind] then call('ZREM', p.k .. 'paused:' .. kind, account) end
    if call('EXISTS', p.k .. 'paused:' .. kind) == 0 then call('SREM', p.k .. 'pauses', kind) end
  end
end

-- Until when a window leaves nothing but a reserve. One that refills steadily is used less by and by.
local function reserved_until(window, reserve)
  local most = 1 - reserve
  if window.used < most or window.resets <= now then return 0 end
  if window.room >= window.resets or window.used == 0 then return window.resets end
  return math.ceil(window.resets - most / window.used * (window.resets - window.seen))
end

-- Until when an account is out for a model of a request; 0 while it serves the model, and `INF` if it does not serve the request.
local function model_until(p, account, model, want)
  if model.failed and want.avoids[account] then return INF end
  local till = math.max(model.till, paused_for(p, model)[account] or 0)
  if want.is_background and p.reserve > 0 then
    for _, window in ipairs(windows_of(account)) do
      if counts_model(window.kind, model) then till = math.max(till, reserved_until(window, p.reserve)) end
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
  if budgeted and want.share then
    for _, one in ipairs(reservations(p, account, want)) do till = math.max(till, full_until(one.limits, one.reserved)) end
  end
  return till
end

-- Whether a request may suit one account of a pool and not another one.
local function is_picky(p, want)
  if (budgeted and want.share) or (want.is_background and p.reserve > 0) then return true end
  for _, model in ipairs(want.models) do
    if model.failed or next(paused_for(p, model)) then return true end
  end
  return false
end

-- The number of the model for which an account serves a request, of those that the request names; 0 without any. While the account is out
-- for one of them, the request is the only one for an hour that tries it.
local function take_models(p, account, want)
  local chosen, tries = nil, false
  for i, model in ipairs(want.models) do
    if not chosen and model_until(p, account, model, want) == 0 then chosen = i end
  end
  for _, window in ipairs(#kinds_of(p) > 0 and windows_of(account) or {}) do
    local is_asked = false
    for _, model in ipairs(want.models) do is_asked = is_asked or counts_model(window.kind, model) end
    if is_asked and is_used_up(window) then
      call('HSET', K .. 'quota:' .. account, window.key, window.said .. int(now) .. ',' .. int(window.room))
      tries = true
    end
  end
  if tries then note_windows(p, account) end
  return chosen or (#want.models > 0 and 1 or 0)
end

-- Requests a lease. Arguments: ticket, the request, and a JSON array of accounts with windows of their quotas that the node has learned. The
-- request is a JSON object:
--   style, patience         as the status shows it; how many milliseconds it waits at most
--   targets, spread, holds  pools with lease requests; `order` or `even`; whether it waits at the first pool alone
--   fallback                targets for an immediate refusal, or for an account that is not ready
--   sticky, stays           the keys of a continued conversation, separated by spaces; whether it prefers the target of the last turn
--   prefers                 accounts that the request prefers before that one: each with its pool and whether it prefers the target too
--   thread                  the key by which the turn before may have left something (`release.lua`)
local ticket, claim = ARGV[4], cjson.decode(ARGV[5])
local known = claim_of(ticket)
if known then return finish(known) end
local learned = cjson.decode(ARGV[6])
for _, one in ipairs(learned) do learn_quota(unpack(one)) end
if #learned > 0 then serve() end
local deadline = now + claim.patience

local function refused(refusal) return { 'refused', unpack(refusal_fields(refusal)) } end

-- The lease request for a pool; nil without a target there.
local function request_at(pool_name)
  for _, targets in ipairs({ claim.targets, claim.fallback }) do
    for _, target in ipairs(targets) do
      if target.pool == pool_name then return target.request end
    end
  end
end

local _, last_pool, last_account = sticky_of(claim.sticky)
claim.preferred, last_pool = last_account, claim.stays and last_pool
for _, one in ipairs(claim.prefers) do
  local pool_name, account, with_target = unpack(one)
  local p, wanted = configured(pool_name), request_at(pool_name)
  local want = wanted and want_of(wanted)
  if p and want and not want.avoids[account] and call('ZSCORE', p.k .. 'spare', account) and suits_at(p, account, want) == 0 then
    claim.preferred, last_pool = account, with_target and pool_name
    break
  end
end
for _, targets in ipairs({ claim.targets, claim.fallback }) do
  for i, target in ipairs(targets) do
    if target.pool == last_pool then
      table.insert(targets, 1, table.remove(targets, i))
      claim.spread, claim.holds = 'order', false
    end
  end
end

-- Whether a target has accounts in rotation now.
local function rotates(target)
  local p = configured(target.pool)
  return p and hopeless(p, target.request, -INF) == nil
end

-- Whether a target has nothing free and may soon have something.
local function is_full(target)
  local p, wanted = by_name[target.pool], target.request
  return p.skip ~= 'yes' and rotates(target) and not (all_in_use() < total and can_serve(p, wanted, claim.preferred)) and has_place(p, wanted)
end

local function ask(targets)
  local able, refusal = able_of(targets, deadline)
  if #able == 0 then return refused(refusal or { reason = 'Unavailable' }) end
  local holds = claim.holds and #able > 1 and able[1] == targets[1] and is_full(able[1])
  local slot = not holds and quiet <= now and choose(able, claim.spread, claim.preferred)
  if slot then
    local probes = slot.pool.skip == 'probe'
    local grant = give(slot.pool, me, ticket, slot.account, slot.request)
    -- Waiters that have skipped pools alone may use them now, and those of an account that is now at its budget others.
    if probes or budgeted then serve() end
    return { 'granted', unpack(grant) }
  end
  numbered = numbered + 1
  -- Returning nodes bring the limits of an empty store.
  local is_empty = quiet > now and revision == '0'
  local record = join(ticket, claim, able, numbered, now, deadline, holds, is_empty)
  if record then return waiting_reply(record) end
  return refused(refusal_of(able, now, refusal, 'Full'))
end

local has_fallback = #claim.fallback > 0 and quiet <= now
local reply
if not has_fallback or rotates(claim.targets[1]) then reply = ask(claim.targets) end
if has_fallback and (not reply or reply[1] == 'refused') then reply = ask(claim.fallback) end
-- What the turn before has left is the last field of a grant, and of the reply to a waiter.
local memory = claim.thread ~= '' and reply[1] ~= 'refused' and call('HGET', K .. 'threads', claim.thread)
if memory then reply[#reply + 1] = memory end
return finish(reply)

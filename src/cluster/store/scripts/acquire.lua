-- Requests a lease. Arguments: ticket, and the request as a JSON object:
--   style, patience         as the status shows it; how many milliseconds it waits at most
--   targets, spread, holds  pools with lease requests, and while there are budgets with what the request may use of them there
--                           (`budgets.lua`); `order` or `even`; whether it waits at the first pool alone
--   fallback                targets for an immediate refusal, or for an account that is not ready
--   sticky, stays           the keys of a continued conversation, separated by spaces; whether it prefers the target of the last turn
--   prefers                 accounts that the request prefers before that one: each with its pool and whether it prefers the target too
--   thread                  the key by which the turn before may have left something (`release.lua`)
local ticket, claim = ARGV[4], cjson.decode(ARGV[5])
local known = claim_of(ticket)
if known then return finish(known) end
local deadline = now + claim.patience

local function refused(reason, till) return { 'refused', unpack(refusal(reason, till)) } end

-- Whether the request asks for another account than this one; each of its targets avoids the same ones.
local function avoids(account)
  local _, set = avoided(claim.targets[1].request)
  return set[account]
end

local last_pool
local _, sticky_pool, sticky_account = sticky_of(claim.sticky)
if sticky_account then
  preferred = sticky_account
  last_pool = claim.stays and sticky_pool
end
for _, one in ipairs(claim.prefers) do
  local pool_name, account, with_target = unpack(one)
  local p = by_name[pool_name]
  if p and call('ZSCORE', p.k .. 'spare', account) and not avoids(account) then
    preferred, last_pool = account, with_target and pool_name
    break
  end
end
for i, target in ipairs(claim.targets) do
  if i > 1 and target.pool == last_pool then
    table.insert(claim.targets, 1, table.remove(claim.targets, i))
    claim.spread, claim.holds = 'order', false
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
  return p.skip ~= 'yes' and rotates(target) and not (all_in_use() < total and can_serve(p, wanted)) and has_place(p, wanted)
end

local function ask(targets)
  local able, reason, till = able_of(targets, deadline)
  if #able == 0 then return refused(reason or 'Unavailable', till) end
  local holds = claim.holds and #able > 1 and able[1] == targets[1] and is_full(able[1])
  local slot = not holds and quiet <= now and choose(able, claim.spread)
  if slot then
    local p, probes = slot.pool, slot.pool.skip == 'probe'
    local fence = give(p, me, ticket, slot.account, slot.share)
    preferred = nil
    -- Waiters that have skipped pools alone may use them now, and those of an account that is now at its budget others.
    if probes or budgeted then serve() end
    return { 'granted', unpack(grant_of(p, me, ticket, slot.account or '', fence)) }
  end
  numbered = numbered + 1
  -- Returning nodes bring the limits of an empty store.
  local is_empty = quiet > now and revision == '0'
  local record = join(ticket, claim, able, numbered, now, deadline, holds, is_empty)
  if record then return waiting_reply(record) end
  return refused(refusal_of(able, now, reason, till, 'Full'))
end

local has_fallback = #claim.fallback > 0 and quiet <= now
local reply
if not has_fallback or rotates(claim.targets[1]) then reply = ask(claim.targets) end
if has_fallback and (not reply or reply[1] == 'refused') then reply = ask(claim.fallback) end
-- What the turn before has left is the last field of a grant, and of the reply to a waiter.
local memory = claim.thread ~= '' and reply[1] ~= 'refused' and call('HGET', K .. 'threads', claim.thread)
if memory then reply[#reply + 1] = memory end
return finish(reply)

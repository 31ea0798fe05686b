-- Requests a lease. Arguments: ticket, lease request, timeout, the alternative request for an immediate refusal (or for an
-- account that is not ready), and the request's style.
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket, wish, patience, instead, style = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]

local held = call('HGET', K .. 'leases:' .. me, ticket)
if held then
  local fence, account = string.match(held, '^(%S+) (.*)$')
  return finish({ 'granted', unpack(grant_of(account, fence)) })
end
local waits = call('HGET', K .. 'tickets:' .. me, ticket)
if waits then return finish({ 'waiting', string.match(waits, '^%S+') }) end

-- During the quiet period of an empty store all requests wait, because returning nodes bring their leases.
local function request(wanted)
  if quiet > now and (waiting < queue or revision == '0') then
    numbered = numbered + 1
    join(me, ticket, wanted, numbered, now + patience, now, style)
    return { 'waiting', int(numbered) }
  end
  local reason, till = hopeless(wanted, now + patience)
  if reason then return { 'refused', reason, int(till and till - now or 0) } end
  if quiet <= now and in_use < global then
    local account = pick(wanted)
    if account or (wanted == 'D' and direct_in_use < direct) then return { 'granted', unpack(give(me, ticket, account)) } end
  end
  if waiting >= queue or (wanted == 'D' and direct_waiting >= math.floor(queue / 2)) then
    reason, till = hopeless(wanted, now)
    return { 'refused', reason or 'Full', int(till and till - now or 0) }
  end
  numbered = numbered + 1
  join(me, ticket, wanted, numbered, now + patience, now, style)
  return { 'waiting', int(numbered) }
end

if instead ~= '' and quiet <= now then
  if state_of(string.sub(wish, 3)) ~= 'ready' then return finish(request(instead)) end
  local reply = request(wish)
  return finish(reply[1] == 'refused' and request(instead) or reply)
end
return finish(request(wish))

-- A waiter has timed out: returns the reason of its refusal, or the grant that came first.
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket = ARGV[4]
local held = call('HGET', K .. 'leases:' .. me, ticket)
if held then
  local fence, account = string.match(held, '^(%S+) (.*)$')
  return finish({ 'granted', unpack(grant_of(account, fence)) })
end
local waits = call('HGET', K .. 'tickets:' .. me, ticket)
local reason
if waits then
  local wish = string.match(waits, '(%S+)$')
  reason = hopeless(wish, -INF)
  if reason == 'Cooling' then
    local _, till = hopeless(wish, -INF)
    close(me, ticket)
    return finish({ 'refused', reason, int(till - now) })
  end
  close(me, ticket)
end
return finish({ 'refused', reason or 'Late', '0' })

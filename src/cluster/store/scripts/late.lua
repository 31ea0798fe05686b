-- A waiter has timed out: returns the reason of its refusal, or the grant that came first.
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket = ARGV[4]
local p, account, fence = lease_of(me, ticket)
if p then return finish({ 'granted', unpack(grant_of(p, me, ticket, account, fence)) }) end
local record, waits = S and S.record_of(me, ticket), call('HGET', K .. 'tickets:' .. me, ticket)
local reason, till
if record then
  reason, till = record.lost, record.lost_till
  for _, target in ipairs(record.targets) do
    if S.is_place(target) then
      local why, when = hopeless(by_name[target[1]], target[2], -INF)
      if why == nil or record.holding then
        reason, till = 'Late', nil
        break
      end
      reason, till = S.sooner_retry(reason, till, why, when)
    end
  end
elseif waits then
  reason, till = hopeless(default, string.match(waits, '(%S+)$'), -INF)
end
close(me, ticket)
return finish({ 'refused', unpack(refusal(reason or 'Late', till)) })

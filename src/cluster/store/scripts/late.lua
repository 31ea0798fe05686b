-- A waiter has timed out: returns the reason of its refusal, or the grant that came first.
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket = ARGV[4]
local record = record_of(me, ticket)
local reason, till
if record then
  reason, till = record.lost, record.lost_till
  for _, target in ipairs(record.targets) do
    if is_place(target) then
      local why, when = hopeless(by_name[target.pool], target.request, -INF)
      if why == nil or record.holding then
        reason, till = 'Late', nil
        break
      end
      reason, till = sooner_retry(reason, till, why, when)
    end
  end
  close(me, ticket)
end
return finish(claim_of(ticket) or { 'refused', unpack(refusal(reason or 'Late', till)) })

-- A waiter has timed out: returns the reason of its refusal, or the grant that came first.
local ticket = ARGV[4]
local record = record_of(me, ticket)
local reason, till
if record then
  reason, till = refusal_of(places_of(record), -INF, record.lost, record.lost_till, 'Late')
  if record.holding then reason, till = 'Late', nil end
  close(me, ticket)
end
return finish(claim_of(ticket) or { 'refused', unpack(refusal(reason or 'Late', till)) })

-- A waiter has timed out: returns the reason of its refusal, or the grant that came first.
local ticket = ARGV[4]
local record = record_of(me, ticket)
local refusal = { reason = 'Late' }
if record then
  if not record.holding then refusal = refusal_of(places_of(record), -INF, record.lost, 'Late') end
  close(me, ticket)
end
return finish(claim_of(ticket) or { 'refused', unpack(refusal_fields(refusal)) })

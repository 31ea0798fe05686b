-- A heartbeat. Arguments: the number of the last message received without a gap, the node's state, its configuration
-- revision, and whether it has brought back all that it holds (1). Returns the time, the shared revision, the numbers of leases
-- and waiters of the node, the end of the quiet period, and the messages since the given one. They include the accounts that
-- this node must probe, until it acknowledges them. Another server than at the last `attach` returns `lost`.
if call('HGET', K .. 'lim', 'server') ~= run_id() then return { 'lost' } end
reap()
if not is_attached() then return finish({ 'lost' }) end
local node = K .. 'node:' .. me
call('ZADD', K .. 'nodes', now + ALIVE, me)
call('HSET', node, 'state', ARGV[5], 'revision', ARGV[6], 'beat', int(now))
local sent = tonumber(call('HGET', node, 'sent')) or 0
local missed = sent - tonumber(ARGV[4])
if missed <= 0 then call('DEL', K .. 'out:' .. me) else call('LTRIM', K .. 'out:' .. me, -missed, -1) end
if ARGV[7] == '1' then has_returned(me) end
if ARGV[5] == 'up' then
  for _, account in ipairs(recover()) do notify(me, 'due ' .. account) end
else
  serve()
end
finish()
local leases, waiters = claims_of(me)
local reply = { 'ok', int(now), revision, int(leases), int(waiters), int(quiet), call('HGET', node, 'sent') or '0' }
for _, item in ipairs(call('LRANGE', K .. 'out:' .. me, 0, -1)) do reply[#reply + 1] = item end
return reply

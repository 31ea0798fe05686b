-- Registers a node with its actual leases and waiters, which replace the store's view of it. Arguments: whether the
-- process starts, an id for data without one, the id that the node knows, its version and start time, a JSON
-- array of leases (ticket, account, fence) and one of waiters (ticket, request, number, remaining and elapsed
-- milliseconds, style). The number 0 means that the node does not know yet whether the store has the waiter. Returns how
-- many leases the store had dropped.
reap()
local starts, fresh, known = ARGV[4] == '1', ARGV[5], ARGV[6]
local leases, tickets = cjson.decode(ARGV[9]), cjson.decode(ARGV[10])
local node = K .. 'node:' .. me

if epoch == '' then
  epoch = fresh
  call('SET', K .. 'epoch', epoch)
  call('HSET', K .. 'lim', 'since', int(now))
  quiet = now + (starts and 1500 or 5000)
  call('SET', K .. 'quiet', int(quiet))
elseif not starts and known ~= epoch and quiet > now then
  -- Other nodes return to an empty store as well.
  quiet = math.max(quiet, (tonumber(call('HGET', K .. 'lim', 'since')) or now) + 5000)
  call('SET', K .. 'quiet', int(quiet))
end
if starts and call('EXISTS', node) == 1 then
  if listens(me) then return finish({ 'taken' }) end
  drop(me)
end

call('ZADD', K .. 'nodes', now + ALIVE, me)
call('HSET', node, 'incarnation', incarnation, 'version', ARGV[7], 'started', ARGV[8], 'beat', int(now), 'state', 'up')
local has, dropped = {}, 0
for _, lease in ipairs(leases) do
  has[lease[1]] = true
  if call('HEXISTS', K .. 'leases:' .. me, lease[1]) == 0 then
    if call('HEXISTS', K .. 'tickets:' .. me, lease[1]) == 1 then close(me, lease[1]) end
    dropped = dropped + 1
    hold(me, lease[1], lease[2], lease[3])
    given = math.max(given, lease[3])
  end
end
for _, ticket in ipairs(tickets) do has[ticket[1]] = true end
for _, kind in ipairs({ 'tickets:', 'leases:' }) do
  for _, ticket in ipairs(call('HKEYS', K .. kind .. me)) do
    if not has[ticket] then close(me, ticket) end
  end
end
call('DEL', K .. 'out:' .. me)
call('HSET', node, 'sent', 0)
for _, ticket in ipairs(tickets) do
  local held = call('HGET', K .. 'leases:' .. me, ticket[1])
  if held then
    local fence, account = string.match(held, '^(%S+) (.*)$')
    if ticket[3] > 0 then notify(me, 'grant ' .. ticket[1] .. ' ' .. table.concat(grant_of(account, fence), ' ')) end
  elseif ticket[3] > 0 and call('HEXISTS', K .. 'tickets:' .. me, ticket[1]) == 0 then
    -- No refusals during the quiet period, because the accounts may not be restored yet.
    local reason, till
    if quiet <= now then reason, till = hopeless(ticket[2], now + ticket[4]) end
    if reason then
      notify(me, 'refuse ' .. ticket[1] .. ' ' .. reason .. ' ' .. int(till and till - now or 0))
    else
      join(me, ticket[1], ticket[2], ticket[3], now + ticket[4], now - ticket[5], ticket[6])
      numbered = math.max(numbered, ticket[3])
    end
  end
end
-- The node may have missed messages: it stays responsible for probes of accounts until it reports their outcome.
local trying = call('HGETALL', K .. 'trying')
for i = 1, #trying, 2 do
  if trying[i + 1] == me then notify(me, 'due ' .. trying[i]) end
end
serve()
finish()
local reply = { 'ok', epoch, int(now), int(quiet), revision, int(dropped) }
for _, item in ipairs(call('LRANGE', K .. 'out:' .. me, 0, -1)) do reply[#reply + 1] = item end
return reply

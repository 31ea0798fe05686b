-- Registers a node with its actual leases and waiters, which replace the store's view of it. Arguments: whether the
-- process starts, an id for data without one, the id that the node knows, its version and start time, a JSON
-- array of leases (ticket, account, fence and pool) and one of waiters: ticket, number, elapsed milliseconds, and the request as `acquire` takes
-- it. The number 0 means that the node does not know yet whether the store has the waiter. Returns how many leases
-- the store had dropped, the run id of the server, and the time of the last write before this server (0 without one). Data of another
-- format returns `format`, its number and that of this node.
local FORMAT = '1'
local server = run_id()
local served, format = unpack(call('HMGET', K .. 'lim', 'server', 'format'))
if format and format ~= FORMAT then return { 'format', format, FORMAT } end
if not format then call('HSET', K .. 'lim', 'format', FORMAT) end
if epoch ~= '' and served and served ~= server then
  -- The data may be older than what the nodes hold: nothing is granted before they have brought it.
  be_quiet(now + ALIVE)
  call('HSET', K .. 'lim', 'back', int(now), 'data_at', call('HGET', K .. 'sum', 'at') or int(now))
  call('DEL', K .. 'returning')
  for _, one in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
    call('ZADD', K .. 'nodes', quiet, one)
    call('SADD', K .. 'returning', one)
  end
  if call('EXISTS', K .. 'returning') == 0 then be_quiet(now + RETURN) end
  -- Numbers that the data lacks are not given twice.
  given, numbered, stamped = given + DISTANCE, numbered + DISTANCE, stamped + DISTANCE
end
if served ~= server then call('HSET', K .. 'lim', 'server', server) end
reap()
local starts, fresh, known = ARGV[4] == '1', ARGV[5], ARGV[6]
local leases, tickets = cjson.decode(ARGV[9]), cjson.decode(ARGV[10])
local node = K .. 'node:' .. me

if epoch == '' then
  epoch = fresh
  call('SET', K .. 'epoch', epoch)
  call('HSET', K .. 'lim', 'since', int(now))
  be_quiet(now + (starts and RETURN or ALIVE))
elseif not starts and known ~= epoch and quiet > now then
  -- Other nodes return to an empty store as well.
  be_quiet(math.max(quiet, (tonumber(call('HGET', K .. 'lim', 'since')) or now) + ALIVE))
end
if starts and call('EXISTS', node) == 1 then
  if listens(me) then return finish({ 'taken' }) end
  drop(me)
end
if not starts and quiet > now and call('HEXISTS', K .. 'lim', 'back') == 1 then call('SADD', K .. 'returning', me) end

call('ZADD', K .. 'nodes', now + ALIVE, me)
call('HSET', node, 'incarnation', incarnation, 'version', ARGV[7], 'started', ARGV[8], 'beat', int(now), 'state', 'up')
local has, dropped = {}, 0
for _, lease in ipairs(leases) do
  has[lease[1]] = true
  if lease_of(me, lease[1]) == nil then
    close(me, lease[1])
    dropped = dropped + 1
    hold(pool_named(lease[4]), me, lease[1], { account = lease[2], fence = lease[3], model = 0 })
    given = math.max(given, lease[3])
  end
end
for _, ticket in ipairs(tickets) do has[ticket[1]] = true end
close_all(me, has)
call('DEL', K .. 'out:' .. me)
call('HSET', node, 'sent', 0)

-- Puts back a waiter.
local function put_back(ticket, number, waited, claim)
  local deadline = now + claim.patience
  numbered = math.max(numbered, number)
  local able, refusal = able_of(claim.targets, deadline)
  if #able == 0 then return notify_refusal(me, ticket, refusal or { reason = 'Unavailable' }) end
  join(ticket, claim, able, number, now - waited, deadline, claim.holds and #able > 1, true)
end
for _, one in ipairs(tickets) do
  local ticket, number = one[1], one[2]
  local p, lease = lease_of(me, ticket)
  if number > 0 and p then
    notify_grant(me, ticket, grant_of(p, me, ticket, lease))
  elseif number > 0 and not record_of(me, ticket) then
    put_back(unpack(one))
  end
end
-- The node may have missed messages: it stays responsible for probes of accounts until it reports their outcome.
for _, account in ipairs(call('SMEMBERS', K .. 'tasks:' .. me)) do
  if account_of(account).trying == me then notify(me, 'due ' .. account) end
end
serve()
finish()
local reply = {
  'ok', epoch, int(now), int(quiet), revision, int(dropped), server, call('HGET', K .. 'lim', 'data_at') or '0'
}
for _, item in ipairs(call('LRANGE', K .. 'out:' .. me, 0, -1)) do reply[#reply + 1] = item end
return reply

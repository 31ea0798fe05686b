-- The state of the pool as a JSON object. The argument `accounts` adds lists of accounts.
reap()
finish()
local reply = {
  now = int(now), in_use = in_use, waiting = waiting, per = per, global = global, queue = queue,
  total = call('SCARD', K .. 'roster') - call('SCARD', K .. 'disabled'), disabled = call('SCARD', K .. 'disabled'),
  cooling = call('ZCARD', K .. 'cool'), out = call('ZCARD', K .. 'untried'), spare = call('ZCARD', K .. 'spare'),
  nodes = {}, waiters = {}
}
for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
  local facts = call('HMGET', K .. 'node:' .. node, 'version', 'started', 'beat', 'state', 'revision')
  reply.nodes[#reply.nodes + 1] = {
    id = node, version = facts[1] or '', started = facts[2] or '0', beat = facts[3] or '0', state = facts[4] or 'up',
    revision = facts[5] or '0', in_use = call('HLEN', K .. 'leases:' .. node),
    waiting = call('HLEN', K .. 'tickets:' .. node)
  }
end
for _, member in ipairs(call('ZRANGE', K .. 'queue', 0, 49)) do
  local node, ticket = string.match(member, '^(.*)|(.*)$')
  local since, style, wish =
    string.match(call('HGET', K .. 'tickets:' .. node, ticket) or '', '^%S+ %S+ (%S+) (%S*) (%S+)$')
  if wish then
    reply.waiters[#reply.waiters + 1] = {
      age = now - tonumber(since), style = style, account = string.sub(wish, 1, 1) == 'P' and string.sub(wish, 3) or ''
    }
  end
end
-- Milliseconds until the next probe of an account that is out; absent while all probes are running.
local first_try = call('ZRANGE', K .. 'untried', 0, 0, 'WITHSCORES')[2]
if first_try and tonumber(first_try) < INF then reply.retry = math.max(0, tonumber(first_try) - now) end
if ARGV[4] == 'accounts' then
  reply.available = call('ZRANGE', K .. 'spare', 0, -1)
  reply.used = call('HKEYS', K .. 'use')
end
return { cjson.encode(reply) }

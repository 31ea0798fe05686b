-- The state of the pools as a JSON object: of each, those that leave included, the waiters in order, and the nodes. The argument `accounts`
-- adds lists of accounts, and the number of accounts in rotation whose last test failed.
reap()
finish()

local function state_of_pool(p)
  local seen = {
    name = p.name, leaving = p.leaving, in_use = p.in_use, waiting = p.waiting, global = p.global, queue = p.queue,
    total = call('SCARD', p.k .. 'roster') - p.disabled, disabled = p.disabled,
    cooling = call('ZCARD', p.k .. 'cool'), out = call('ZCARD', p.k .. 'untried'), spare = call('ZCARD', p.k .. 'spare')
  }
  -- Milliseconds until the next probe of an account that is out; absent while all probes are running.
  local first_try = call('ZRANGE', p.k .. 'untried', 0, 0, 'WITHSCORES')[2]
  if first_try and tonumber(first_try) < INF then seen.retry = math.max(0, tonumber(first_try) - now) end
  -- Milliseconds until a probe of the upstream, and the fault; absent unless it is cooled.
  if p.till then seen.cooled, seen.cause = math.max(0, p.till - now), p.cause end
  if p.spent > 0 then seen.spent = math.max(0, p.spent - now) end
  if budgeted then seen.used_of_budgets = used_of_budgets('@' .. p.name) end
  if ARGV[4] == 'accounts' then
    seen.available = call('ZRANGE', p.k .. 'spare', 0, -1)
    seen.used = call('SMEMBERS', p.k .. 'used')
  end
  return seen
end

local reply = { now = int(now), global = total, waiting = call('ZCARD', K .. 'queue'), pools = {}, nodes = {}, waiters = {} }
for i, p in ipairs(pools) do reply.pools[i] = state_of_pool(p) end
if ARGV[4] == 'accounts' then
  reply.failed_tests = 0
  for _, account in ipairs(call('SMEMBERS', K .. 'failed_tests')) do
    if not account_of(account).disabled and state_of(account) == 'ready' then
      reply.failed_tests = reply.failed_tests + 1
    end
  end
end
for i, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
  local facts = call('HMGET', K .. 'node:' .. node, 'version', 'started', 'beat', 'state', 'revision')
  local leases, waiters = claims_of(node)
  reply.nodes[i] = {
    id = node, version = facts[1] or '', started = facts[2] or '0', beat = facts[3] or '0', state = facts[4] or 'up',
    revision = facts[5] or '0', in_use = leases, waiting = waiters
  }
end
for i, member in ipairs(call('ZRANGE', K .. 'queue', 0, 49)) do
  local record = record_of(string.match(member, '^(.*)|(.*)$'))
  local account = want_of(record.targets[1].request).account
  reply.waiters[i] = { age = now - record.since, style = record.style, account = account or '' }
end
return { cjson.encode(reply) }

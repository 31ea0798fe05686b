-- The state of the pools as a JSON object: of all, and, if several are configured, of each. The argument `accounts` adds lists
-- of accounts, and the number of accounts in rotation whose last test failed.
reap()
finish()

local function state_of_pool(p)
  local disabled = call('SCARD', p.k .. 'disabled')
  local seen = {
    in_use = p.in_use, waiting = p.waiting, per = p.per, global = p.global, queue = p.queue,
    total = call('SCARD', p.k .. 'roster') - disabled, disabled = disabled,
    cooling = call('ZCARD', p.k .. 'cool'), out = call('ZCARD', p.k .. 'untried'), spare = call('ZCARD', p.k .. 'spare')
  }
  -- Milliseconds until the next probe of an account that is out; absent while all probes are running.
  local first_try = call('ZRANGE', p.k .. 'untried', 0, 0, 'WITHSCORES')[2]
  if first_try and tonumber(first_try) < INF then seen.retry = math.max(0, tonumber(first_try) - now) end
  if p.spent > 0 then seen.spent = math.max(0, p.spent - now) end
  if B then seen.used_of_budgets = B.told('@' .. p.name) end
  if ARGV[4] == 'accounts' then
    seen.available = call('ZRANGE', p.k .. 'spare', 0, -1)
    seen.used = call('HKEYS', p.k .. 'use')
  end
  return seen
end

local function state_of_all()
  local sum = { retry = INF, per = default.per, global = total, queue = 0 }
  local each = {}
  for _, p in ipairs(pools) do
    local seen = state_of_pool(p)
    for _, field in ipairs({ 'in_use', 'total', 'disabled', 'cooling', 'out', 'spare' }) do
      sum[field] = (sum[field] or 0) + seen[field]
    end
    for _, field in ipairs({ 'available', 'used' }) do
      if seen[field] then
        sum[field] = sum[field] or {}
        for _, account in ipairs(seen[field]) do table.insert(sum[field], account) end
      end
    end
    if not p.leaving then
      sum.queue = sum.queue + seen.queue
      sum.retry = math.min(sum.retry, seen.retry or INF)
      seen.name, seen.enabled, seen.skip = p.name, p.open, p.skip
      -- Milliseconds until a probe of the upstream, and the fault; absent unless it is cooled.
      if p.till then seen.cooled, seen.cause = math.max(0, p.till - now), p.cause end
      each[#each + 1] = seen
    end
  end
  sum.waiting = call('ZCARD', K .. 'queue')
  if sum.global == INF then sum.global = default.global end
  if sum.retry == INF then sum.retry = nil end
  sum.pools = each
  return sum
end

local reply = multi_pool and state_of_all() or state_of_pool(default)
reply.now, reply.nodes, reply.waiters = int(now), {}, {}
if ARGV[4] == 'accounts' then
  reply.failed_tests = 0
  for _, account in ipairs(call('SMEMBERS', K .. 'failed_tests')) do
    local p = pool_of(account)
    if call('SISMEMBER', p.k .. 'disabled', account) == 0 and state_of(p, account) == 'ready' then
      reply.failed_tests = reply.failed_tests + 1
    end
  end
end
for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
  local facts = call('HMGET', K .. 'node:' .. node, 'version', 'started', 'beat', 'state', 'revision')
  local leases, waiters = claims_of(node)
  reply.nodes[#reply.nodes + 1] = {
    id = node, version = facts[1] or '', started = facts[2] or '0', beat = facts[3] or '0', state = facts[4] or 'up',
    revision = facts[5] or '0', in_use = leases, waiting = waiters
  }
end
for _, member in ipairs(call('ZRANGE', K .. 'queue', 0, 49)) do
  local node, ticket = string.match(member, '^(.*)|(.*)$')
  local record = S and S.record_of(node, ticket)
  local since, style, lease_request
  if record then
    since, style, lease_request = record.since, record.style, record.targets[1][2]
  else
    since, style, lease_request =
      string.match(call('HGET', K .. 'tickets:' .. node, ticket) or '', '^%S+ %S+ (%S+) (%S*) (%S+)$')
  end
  if lease_request then
    local waiter = {
      age = now - tonumber(since), style = style, account = string.sub(lease_request, 1, 1) == 'P' and string.sub(lease_request, 3) or ''
    }
    if multi_pool then
      waiter.pools = {}
      for _, target in ipairs(record and record.targets or { { 'default', lease_request, 'placed' } }) do
        if target[3] == 'placed' or target[3] == 'parked' then waiter.pools[#waiter.pools + 1] = target[1] end
      end
    end
    reply.waiters[#reply.waiters + 1] = waiter
  end
end
return { cjson.encode(reply) }

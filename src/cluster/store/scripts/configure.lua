-- Saves a document together with its accounts and limits. Arguments: its base revision and its own, the encrypted
-- document, the limits, whether to drop all tokens, and JSON arrays: accounts with changed credentials, all accounts in
-- order, and the disabled ones; then the deadline, after which nothing is saved because the caller has already got an
-- error. A document that is restored to an empty store has no base revision: the highest one wins. Then, if given, the
-- revision and the document that the store's data began with (empty: this document); they are the merge base for a
-- document of earlier data. The next two arguments are the proofs of the document and of that first one. The last one, if it is not empty,
-- is a JSON object of the pools that are not in rotation: by name, how they choose, and priority and weight of each of their accounts. Behind it
-- the budgets may follow, a JSON array of subjects with their limits (`budgets.lua`).
--
-- The argument before the proofs lists several pools, if it is not empty: a JSON array of the limit of all and an array of pools. A pool is its name, whether
-- it is enabled (1), slots of an account, of all, places in the queue, slots of direct callers, whether to drop all tokens
-- (1), and the three lists of accounts; `default` is the first two of them, and the other arguments. Without the list,
-- `default` is the only pool.
reap()
if not is_attached() then return finish({ 'lost' }) end
if ARGV[15] and now > tonumber(ARGV[15]) then return finish({ 'late' }) end
local expected, own = ARGV[4], ARGV[5]
if expected == '' and tonumber(revision) >= tonumber(own) then return finish({ 'older', revision }) end
if expected ~= '' and expected ~= revision then return finish({ 'conflict', revision }) end
revision = own
call('HSET', K .. 'lim', 'per', ARGV[7], 'global', ARGV[8], 'queue', ARGV[9], 'direct', ARGV[10], 'revision', revision)
call('HSET', K .. 'config', 'revision', revision, 'document', ARGV[6], 'proof', ARGV[19] or '')
if ARGV[16] and ARGV[16] ~= '' then
  local origin = ARGV[17] == '' and ARGV[6] or ARGV[17]
  call('HSET', K .. 'config', 'origin_revision', ARGV[16], 'origin', origin, 'origin_proof', ARGV[20] or '')
end

local function pool_of_arguments(enabled)
  return {
    'default', enabled, tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]),
    cjson.decode(ARGV[12]), cjson.decode(ARGV[13]), cjson.decode(ARGV[14])
  }
end
local next_total, wanted_pools = INF, { pool_of_arguments(1) }
if ARGV[18] and ARGV[18] ~= '' then
  load_multi_pool()
  local choice = cjson.decode(ARGV[18])
  multi_pool, next_total, wanted_pools = true, choice[1], choice[2]
  for i, spec in ipairs(wanted_pools) do
    if spec[1] == 'default' then wanted_pools[i] = pool_of_arguments(spec[2]) end
  end
elseif S then
  S.reset_cooling(default)
end
local choices = ARGV[21] and ARGV[21] ~= '' and cjson.decode(ARGV[21]) or {}
local next_pools = {}
for _, spec in ipairs(wanted_pools) do next_pools[spec[1]] = spec end

-- Forgets what is known of an account, except for its slots.
local function erase(account)
  call('DEL', K .. 'health:' .. account, K .. 'token:' .. account, K .. 'login:' .. account, K .. 'quota:' .. account)
  call('SREM', K .. 'failed_tests', account)
end

local function renew(account)
  erase(account)
  call('HSET', K .. 'health:' .. account, 'epoch', stamp())
end

-- Applies what bounds the next grants.
local function prepare(p, spec)
  p.open = spec ~= nil and spec[2] == 1
  if spec then
    p.resized = p.resized or p.per ~= spec[3]
    p.per, p.global, p.queue, p.direct = spec[3], spec[4], spec[5], spec[6]
  end
end

local function apply(p, resets, renewed, accounts, disabled)
  local wanted, off = {}, {}
  for _, account in ipairs(accounts) do wanted[account] = true end
  for _, account in ipairs(disabled) do off[account] = true end
  local before = call('SMEMBERS', p.k .. 'roster')
  -- New accounts are added before old ones are removed, so that the pool is never empty in between.
  for _, account in ipairs(accounts) do
    if call('SADD', p.k .. 'roster', account) == 1 then
      if p ~= default then call('HSET', K .. 'home', account, p.name) end
      if used(p, account) == 0 then
        call('HSET', p.k .. 'last', account, NEVER_GIVEN + arrived)
        arrived = arrived + 1
      end
      renew(account)
      place(p, account)
    end
  end
  for _, account in ipairs(before) do
    if not wanted[account] then
      set_enabled(p, account, true)
      call('SREM', p.k .. 'roster', account)
      if p ~= default then call('HDEL', K .. 'home', account) end
      if budgeted then call('HDEL', p.k .. 'spent', account) end
      call('HDEL', p.k .. 'stated', account)
      erase(account)
      set_state(p, account, 'ready', 0)
      if used(p, account) == 0 then forget(p, account) end
      refuse_pinned(p, account)
    elseif resets then
      renew(account)
      set_state(p, account, 'ready', 0)
    elseif p.resized then
      place(p, account)
    end
  end
  p.resized = nil
  for _, account in ipairs(renewed) do
    if wanted[account] then
      renew(account)
      set_state(p, account, 'ready', 0)
    end
  end
  for _, account in ipairs(call('SMEMBERS', p.k .. 'disabled')) do
    if not off[account] then set_enabled(p, account, true) end
  end
  for _, account in ipairs(disabled) do
    if wanted[account] then set_enabled(p, account, false) end
  end
  local choose, ranks = unpack(choices[p.name] or { 'rotate', {} })
  if choose ~= 'rotate' or choice_of(p).choose ~= 'rotate' then
    local sum = 0
    call('DEL', p.k .. 'ranks', p.k .. 'starts')
    for i, account in ipairs(accounts) do
      local priority, weight = unpack(ranks[i] or { 0, 1 })
      if not off[account] then sum = sum + weight end
      call('HSET', p.k .. 'ranks', account, int(i) .. ' ' .. int(priority) .. ' ' .. int(weight))
      call('HSET', p.k .. 'starts', account, exact(i * STEP))
    end
    p.choice = { choose = choose, at = 0, sum = math.max(1, sum) }
    call('HSET', p.k .. 'choice', 'choose', choose, 'at', '0', 'sum', int(p.choice.sum))
    for _, account in ipairs(accounts) do place(p, account) end
  end
  if not p.open then S.refuse_all(p) end
  -- Another upstream has another health.
  if resets and S then S.reset_cooling(p) end
  refuse_shared(p)
end

-- No grant in between may exceed a new limit of a pool that is configured later.
total = next_total
for _, p in ipairs(pools) do prepare(p, next_pools[p.name]) end
for _, spec in ipairs(wanted_pools) do
  local p = by_name[spec[1]]
  if p == nil then
    p = make_pool(spec[1], spec[3], spec[4], spec[5], spec[6])
    pools[#pools + 1], by_name[p.name] = p, p
  elseif p.leaving then
    -- It comes back behind the others.
    for i, other in ipairs(pools) do
      if other == p then table.remove(pools, i) end
    end
    pools[#pools + 1] = p
  end
  p.leaving = false
  prepare(p, spec)
  apply(p, spec[7] == 1, spec[8], spec[9], spec[10])
end
for _, p in ipairs({ unpack(pools) }) do
  if not next_pools[p.name] and not p.leaving then
    p.leaving = true
    apply(p, false, {}, {}, {})
    S.reset_cooling(p)
    S.forget_pool(p)
  end
end
if S then S.save_pools() end
local budgets = ARGV[22] and ARGV[22] ~= '' and cjson.decode(ARGV[22]) or {}
if budgeted or #budgets > 0 then
  load_budgets()
  B.configure(budgets)
end
serve()
broadcast('config ' .. revision)
return finish({ 'ok', revision })

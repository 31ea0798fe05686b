-- Saves a document together with its pools. The argument is a JSON object:
--   expected, revision  the revision that the document replaces, and its own. A document that is restored to an empty store replaces
--                       none (empty): the highest one wins
--   deadline            after which nothing is saved, because the caller has already got an error
--   document, proof     the encrypted document, and what proves its revision
--   origin              if given, the revision, document and proof that the store's data began with: the merge base for a document of
--                       earlier data
--   total               the most slots in use of all pools
--   pools               each with its name, whether it is enabled, slots of an account, of all, places in the queue, slots of direct
--                       callers, the share of windows that background requests leave to others, whether to drop all tokens, its accounts
--                       in order, those with changed credentials, the disabled ones, how it chooses, and priority and weight of each
--                       account unless they are in rotation
--   budgets             subjects with their limits (`budgets.lua`)
local config = cjson.decode(ARGV[4])
if now > config.deadline then return finish({ 'late' }) end
if config.expected == '' and tonumber(revision) >= config.revision then return finish({ 'older', revision }) end
if config.expected ~= '' and config.expected ~= revision then return finish({ 'conflict', revision }) end
revision = int(config.revision)
total = config.total
call('HSET', K .. 'lim', 'revision', revision, 'total', total)
call('HSET', K .. 'config', 'revision', revision, 'document', config.document, 'proof', config.proof)
local origin = config.origin
if origin then
  call('HSET', K .. 'config', 'origin_revision', int(origin.revision), 'origin', origin.document, 'origin_proof', origin.proof)
end

local next_pools = {}
for _, spec in ipairs(config.pools) do next_pools[spec.name] = spec end

-- Forgets what is known of an account, except for its slots and its place.
local LASTING = {
  pool = true, member = true, disabled = true, use = true, cleaning = true, last = true, order = true, priority = true, weight = true,
  start = true
}
local function erase(p, account)
  call('DEL', K .. 'token:' .. account, K .. 'login:' .. account, K .. 'quota:' .. account)
  local a = changed_account(account)
  for field in pairs(a) do
    if not LASTING[field] then a[field] = nil end
  end
  call('SREM', K .. 'failed_tests', account)
  note_windows(p, account)
  arrange(p, account)
end

local function renew(p, account)
  erase(p, account)
  changed_account(account).epoch = stamp()
end

-- Pools whose accounts have another number of slots.
local resized = {}

-- Applies what bounds the next grants.
local function prepare(p, spec)
  p.open, p.changed = spec ~= nil and spec.enabled, true
  if spec then
    resized[p] = resized[p] or p.per ~= spec.per
    p.per, p.global, p.queue, p.direct, p.reserve = spec.per, spec.global, spec.queue, spec.direct, spec.reserve
  end
end

local function apply(p, spec)
  local accounts, wanted, off = spec.accounts, {}, {}
  for _, account in ipairs(accounts) do wanted[account] = true end
  for _, account in ipairs(spec.disabled) do off[account] = true end
  local before = call('SMEMBERS', p.k .. 'roster')
  -- New accounts are added before old ones are removed, so that the pool is never empty in between.
  for _, account in ipairs(accounts) do
    if call('SADD', p.k .. 'roster', account) == 1 then
      local a = changed_account(account)
      a.pool, a.member = p.name, true
      if a.use == 0 then a.last, arrived = NEVER_GIVEN + arrived, arrived + 1 end
      renew(p, account)
    end
  end
  for _, account in ipairs(before) do
    if not wanted[account] then
      set_enabled(p, account, true)
      call('SREM', p.k .. 'roster', account)
      changed_account(account).member = nil
      erase(p, account)
      if account_of(account).use == 0 then forget(account) end
      refuse_pinned(p, account)
    elseif spec.resets then
      renew(p, account)
    elseif resized[p] then
      place(p, account)
    end
  end
  for _, account in ipairs(spec.renewed) do
    if wanted[account] then renew(p, account) end
  end
  for _, account in ipairs(accounts) do
    if account_of(account).disabled ~= (off[account] or false) then set_enabled(p, account, not off[account]) end
  end
  if spec.choose ~= 'rotate' or p.choose ~= 'rotate' then
    local sum = 0
    for i, account in ipairs(accounts) do
      local priority, weight = unpack(spec.ranks[i] or { 0, 1 })
      if not off[account] then sum = sum + weight end
      local a = changed_account(account)
      a.order, a.priority, a.weight, a.start = i, priority, weight, exact(i * STEP)
    end
    p.choose, p.at, p.sum = spec.choose, '0', math.max(1, sum)
    for _, account in ipairs(accounts) do place(p, account) end
  end
  if not p.open then refuse_others(p) end
  -- Another upstream has another health.
  if spec.resets then reset_cooling(p) end
  unblock(p)
  refuse_shared(p)
end

for _, p in ipairs(pools) do
  -- A single upstream is never left out.
  if #config.pools == 1 then reset_cooling(p) end
  -- No grant in between may exceed a new limit of a pool that is configured later.
  prepare(p, next_pools[p.name])
end
for _, spec in ipairs(config.pools) do
  local p = by_name[spec.name]
  -- One that comes back is behind the others.
  if p and p.leaving then remove_pool(p) end
  if not p or p.leaving then append_pool(p or make_pool(spec.name)) end
  p = by_name[spec.name]
  p.leaving = false
  prepare(p, spec)
  apply(p, spec)
end
for _, p in ipairs({ unpack(pools) }) do
  if not next_pools[p.name] and not p.leaving then
    p.leaving = true
    apply(p, { accounts = {}, disabled = {}, renewed = {}, choose = 'rotate' })
    reset_cooling(p)
    forget_pool(p)
  end
end
configure_budgets(config.budgets)
serve()
tell('*', 'config ' .. revision)
return finish({ 'ok', revision })

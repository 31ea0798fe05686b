-- Saves a document together with its accounts and limits. Arguments: its base revision and its own, the encrypted
-- document, the limits, whether to drop all tokens, and JSON arrays: accounts with changed credentials, all accounts in
-- order, and the disabled ones; then the deadline, after which nothing is saved because the caller has already got an
-- error. A document that is restored to an empty store has no base revision: the highest one wins. The last two arguments,
-- if given, are the revision and the document that the store's data began with (empty: this document); they are the merge
-- base for a document of earlier data.
reap()
if not is_attached() then return finish({ 'lost' }) end
if ARGV[15] and now > tonumber(ARGV[15]) then return finish({ 'late' }) end
local expected, own = ARGV[4], ARGV[5]
if expected == '' and tonumber(revision) >= tonumber(own) then return finish({ 'older', revision }) end
if expected ~= '' and expected ~= revision then return finish({ 'conflict', revision }) end
per, global, queue, direct, revision = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), own
local renewed, accounts, disabled = cjson.decode(ARGV[12]), cjson.decode(ARGV[13]), cjson.decode(ARGV[14])
local resized = per ~= tonumber(limits[1])
call('HSET', K .. 'lim', 'per', per, 'global', global, 'queue', queue, 'direct', direct,
  'revision', revision)
call('HSET', K .. 'config', 'revision', revision, 'document', ARGV[6])
if ARGV[16] then
  call('HSET', K .. 'config', 'origin_revision', ARGV[16], 'origin', ARGV[17] == '' and ARGV[6] or ARGV[17])
end

-- Resets an account, except for its slots.
local function renew(account)
  call('DEL', K .. 'health:' .. account, K .. 'token:' .. account, K .. 'login:' .. account)
  call('HSET', K .. 'health:' .. account, 'epoch', stamp())
end

local wanted, off = {}, {}
for _, account in ipairs(accounts) do wanted[account] = true end
for _, account in ipairs(disabled) do off[account] = true end
local before = call('SMEMBERS', K .. 'roster')
-- New accounts are added before old ones are removed, so that the pool is never empty in between.
for _, account in ipairs(accounts) do
  if call('SADD', K .. 'roster', account) == 1 then
    if used(account) == 0 then
      call('HSET', K .. 'last', account, NEVER_GIVEN + arrived)
      arrived = arrived + 1
    end
    renew(account)
    place(account)
  end
end
for _, account in ipairs(before) do
  if not wanted[account] then
    set_enabled(account, true)
    call('SREM', K .. 'roster', account)
    call('DEL', K .. 'health:' .. account, K .. 'token:' .. account, K .. 'login:' .. account)
    set_state(account, 'ready', 0)
    if used(account) == 0 then forget(account) end
    refuse_pinned(account)
  elseif ARGV[11] == '1' then
    renew(account)
    set_state(account, 'ready', 0)
  elseif resized then
    place(account)
  end
end
for _, account in ipairs(renewed) do
  if wanted[account] then
    renew(account)
    set_state(account, 'ready', 0)
  end
end
for _, account in ipairs(call('SMEMBERS', K .. 'disabled')) do
  if not off[account] then set_enabled(account, true) end
end
for _, account in ipairs(disabled) do
  if wanted[account] then set_enabled(account, false) end
end
refuse_shared()
serve()
broadcast('config ' .. revision)
return finish({ 'ok', revision })

-- Saves a document together with the roster and the limits that follow from it. Takes the revision that it was made from and
-- its own, the sealed document, the limits, whether all tokens are to be dropped, and JSON arrays: the accounts whose
-- credentials changed, all accounts, in order, and those of them that are disabled; then the time after which nothing is to be
-- done, since who asked has been told that it failed. A document that is brought back to an empty store has no revision
-- that it was made from: the highest one wins. Last, where given, the revision and the document that the store's data began
-- with (empty: this one); a document of earlier data is merged by what it changed since.
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

-- An account is another one to the pool, but for its slots.
local function renew(account)
  call('DEL', K .. 'health:' .. account, K .. 'token:' .. account, K .. 'login:' .. account)
  call('HSET', K .. 'health:' .. account, 'epoch', stamp())
end

local wanted, off = {}, {}
for _, account in ipairs(accounts) do wanted[account] = true end
for _, account in ipairs(disabled) do off[account] = true end
local before = call('SMEMBERS', K .. 'roster')
-- What comes is there before what goes is gone, so that nobody finds the pool empty.
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

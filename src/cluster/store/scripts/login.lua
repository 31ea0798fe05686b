-- Logins of accounts, one at a time for each account over all nodes, and their tokens. Operations:
--   start account version   claims the login: `yours`, `running`, or `token` if there is a newer version
--   look account            the state of the login: `running`, `failed` with the encrypted reason, or `token`
--   done account token      the login succeeded; returns the version, or `late` if this node no longer owns the login
--   failed account reason   the login failed; all waiting nodes get this reason
--   drop account version    the upstream has rejected this version; a newer one stays
--   restore account token time version   restores a token to a store that was emptied (no version), or whose data is older
-- A token is `<version> <time> <encrypted>`; `-` replaces a rejected one.
local op, account = ARGV[4], ARGV[5]
local p = pool_of(account)
local lock, mine = K .. 'login:' .. account, 'run ' .. me
local health, token = health_key(account), K .. 'token:' .. account
local function version() return call('HGET', health, 'token') or '0' end
local function current() return { 'token', call('GET', token) or '0 0 ' } end
local function put(time, sealed)
  local next_version = stamp()
  call('HSET', health, 'token', next_version)
  call('SET', token, next_version .. ' ' .. time .. ' ' .. sealed)
  return next_version
end

local state = call('GET', lock)
local running = state and string.sub(state, 1, 4) == 'run '
if op == 'start' then
  if version() ~= ARGV[6] then return finish(current()) end
  if running then return finish({ 'running' }) end
  call('SET', lock, mine, 'PX', 30000)
  call('SADD', K .. 'logins:' .. me, account)
  return finish({ 'yours' })
elseif op == 'look' then
  if running then return finish({ 'running' }) end
  if state then return finish({ 'failed', string.sub(state, 5) }) end
  return finish(current())
elseif op == 'done' or op == 'failed' then
  call('SREM', K .. 'logins:' .. me, account)
  if state ~= mine or not is_member(p, account) then return finish({ 'late' }) end
  local reply = { 'ok', '0' }
  if op == 'done' then
    call('DEL', lock)
    reply[2] = put(int(now), ARGV[6])
  else
    call('SET', lock, 'end ' .. ARGV[6], 'PX', 5000)
  end
  tell('*', 'login ' .. account)
  return finish(reply)
elseif op == 'drop' then
  if version() == ARGV[6] and is_member(p, account) then put(int(now), '-') end
elseif op == 'restore' then
  local has = tonumber(version())
  if has < (tonumber(ARGV[8]) or 1) and is_member(p, account) then put(ARGV[7], ARGV[6]) end
end
return finish({ 'ok' })

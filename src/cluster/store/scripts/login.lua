-- Logins of accounts, one at a time for each account over all nodes, and their tokens. Operations:
--   start account version   claims the login: `yours`, `running`, or `token` if there is a newer version
--   look account            the state of the login: `running`, `failed` with the encrypted reason, or `token`
--   done account token      the login succeeded; returns the version, or `late` if this node no longer owns the login
--   failed account reason   the login failed; all waiting nodes get this reason
--   drop account version    the upstream has rejected this version; a newer one stays
--   restore account token time version   restores a token to a store that was emptied (no version), or whose data is older
-- A token is `<version> <time> <encrypted>`; `-` replaces a rejected one.
local op, account = ARGV[4], ARGV[5]
local a, token = account_of(account), K .. 'token:' .. account
local lock, mine = K .. 'login:' .. account, 'run ' .. me
local function current() return { 'token', call('GET', token) or '0 0 ' } end
local function put(time, sealed)
  changed_account(account).token = stamp()
  call('SET', token, a.token .. ' ' .. time .. ' ' .. sealed)
  return a.token
end

local state = call('GET', lock)
local running = state and string.sub(state, 1, 4) == 'run '
if op == 'start' then
  if a.token ~= ARGV[6] then return finish(current()) end
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
  if state ~= mine or not a.member then return finish({ 'late' }) end
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
  if a.token == ARGV[6] and a.member then put(int(now), '-') end
elseif op == 'restore' then
  if tonumber(a.token) < (tonumber(ARGV[8]) or 1) and a.member then put(ARGV[7], ARGV[6]) end
end
return finish({ 'ok' })

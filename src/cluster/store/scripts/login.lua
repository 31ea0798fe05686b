-- One login at a time an account over all nodes, and its token. Operations:
--   start account version   whose the login is: `yours`, `running`, or `token` where there is a newer version already
--   look account            what became of it: `running`, `failed` with the sealed reason, or `token`
--   done account sealed     it worked; the version, or `late` where the login is no longer this node's
--   failed account sealed   it did not; those who wait for it take that result
--   drop account version    the upstream has refused this version; a newer one is left alone
--   restore account sealed time    a token that an empty store had once
-- A token is `<version> <time> <sealed>`; `-` stands for one that was refused.
reap()
if not is_attached() then return finish({ 'lost' }) end
local op, account = ARGV[4], ARGV[5]
local lock, mine = K .. 'login:' .. account, 'run ' .. me
local health, token = K .. 'health:' .. account, K .. 'token:' .. account
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
  if state ~= mine or not is_member(account) then return finish({ 'late' }) end
  local reply = { 'ok', '0' }
  if op == 'done' then
    call('DEL', lock)
    reply[2] = put(int(now), ARGV[6])
  else
    call('SET', lock, 'end ' .. ARGV[6], 'PX', 5000)
  end
  broadcast('login ' .. account)
  return finish(reply)
elseif op == 'drop' then
  if version() == ARGV[6] and is_member(account) then put(int(now), '-') end
elseif op == 'restore' then
  if version() == '0' and is_member(account) then put(ARGV[7], ARGV[6]) end
end
return finish({ 'ok' })

-- A health report outside of a lease, optionally with the result of a test. A successful one forgets the windows of the quota.
reap()
if not is_attached() then return finish({ 'lost' }) end
local account, tested = ARGV[5], ARGV[4]
if tested ~= '' and is_member(pool_of(account), account) then
  call('HSET', K .. 'health:' .. account, 'tested', tested)
  call(tested == 'failed' and 'SADD' or 'SREM', K .. 'failed_tests', account)
  if tested == 'ok' and call('DEL', K .. 'quota:' .. account) == 1 then
    place(pool_of(account), account)
    broadcast('quota ' .. account)
  end
end
return finish(report_at(5))

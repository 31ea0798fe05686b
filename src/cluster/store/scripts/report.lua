-- A health report outside of a lease, optionally with the result of a test. A successful one forgets the windows of the quota.
local tested, seen = ARGV[4], cjson.decode(ARGV[5])
local account = seen.account
if tested ~= '' and account_of(account).member then
  changed_account(account).tested = tested
  call(tested == 'failed' and 'SADD' or 'SREM', K .. 'failed_tests', account)
  if tested == 'ok' and call('DEL', K .. 'quota:' .. account) == 1 then
    local p = pool_of(account)
    note_windows(p, account)
    place(p, account)
    unblock(p, account)
    serve()
    tell('*', 'quota ' .. account)
  end
end
return finish(report(seen))

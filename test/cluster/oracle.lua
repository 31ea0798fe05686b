-- Single operations of the pool's scripts, for tests that compare them with `PoolState`.
reap()
local op, account = ARGV[4], ARGV[5]
local reply = { 'ok' }
if op == 'suspend' then suspend(pool_of(account), account, ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])) end
if op == 'spend' or op == 'spend_all' then
  call('HSET', K .. 'lim', 'budgets', '1')
  budgeted = true
  if op == 'spend' then
    spend(pool_of(account), account, tonumber(ARGV[6]))
  elseif by_name[account] then
    spend_all(by_name[account], tonumber(ARGV[6]))
  end
  serve()
end
if op == 'restore' then restore(pool_of(account), account) end
if op == 'recover' then
  for _, due_account in ipairs(recover()) do reply[#reply + 1] = due_account end
end
if op == 'clean' then set_cleaning(pool_of(account), account, ARGV[6] == '1' and me or nil) end
if op == 'reset' then
  call('DEL', K .. 'quota:' .. account)
  if ARGV[6] ~= '' then call('HSET', K .. 'quota:' .. account, '5h,', '0,,,' .. ARGV[6] .. ',ok,0,' .. ARGV[6]) end
  note_windows(pool_of(account), account)
  place(pool_of(account), account)
end
if op == 'learn' then
  learn_quota(account, ARGV[6])
  serve()
end
if op == 'look' then
  local p = by_name['default']
  local draining = {}
  for _, used_account in ipairs(call('SMEMBERS', p.k .. 'used')) do
    if not account_of(used_account).member then draining[#draining + 1] = used_account end
  end
  return { int(p.in_use), int(p.waiting), int(call('ZCARD', p.k .. 'spare')), table.concat(draining, ' ') }
end
-- Of all pools: slots in use and waiters; then each pool: name, slots in use, waiters, accounts with a free slot, whether it is
-- skipped and until when, and the leases that the nodes hold of it.
if op == 'pools' then
  local held = {}
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
    for _, lease in ipairs(call('HVALS', K .. 'leases:' .. node)) do
      local name = cjson.decode(lease).pool
      held[name] = (held[name] or 0) + 1
    end
  end
  reply = { int(all_in_use()), int(call('ZCARD', K .. 'queue')) }
  for _, p in ipairs(pools) do
    local facts = {
      p.name, int(p.in_use), int(p.waiting), int(call('ZCARD', p.k .. 'spare')), p.skip, p.till and int(p.till) or '-',
      int(held[p.name] or 0), p.leaving and 'leaving' or 'configured'
    }
    reply[#reply + 1] = table.concat(facts, ' ')
  end
end
return finish(reply)

-- Single operations of the pool's scripts, for tests that compare them with `PoolState`.
local op, account = ARGV[4], ARGV[5]
local reply = { 'ok' }
if op == 'suspend' then suspend(account, ARGV[6], tonumber(ARGV[7])) end
if op == 'restore' then restore(account) end
if op == 'recover' then
  for _, due_account in ipairs(recover()) do reply[#reply + 1] = due_account end
end
if op == 'clean' then set_cleaning(account, ARGV[6] == '1' and me or nil) end
if op == 'look' then
  local draining = {}
  for _, used_account in ipairs(call('HKEYS', K .. 'use')) do
    if not is_member(used_account) then draining[#draining + 1] = used_account end
  end
  return { int(in_use), int(waiting), int(call('ZCARD', K .. 'spare')), table.concat(draining, ' ') }
end
return finish(reply)

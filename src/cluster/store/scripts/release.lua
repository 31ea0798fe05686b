-- Ends a lease or a waiter, with a health report (`health.lua`). `unclean` is `1` if sessions were created that must be
-- deleted once no node has a lease on the account; the reply then assigns the deletion to this node. If it is empty, this
-- node cannot delete and leaves that to the next lease.
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket, unclean = ARGV[4], ARGV[5]
local seen = report_at(6)
local was, account = close(me, ticket)
serve()
local clean = ''
if was == 'granted' and account ~= '' then
  local key = K .. 'health:' .. account
  if unclean == '1' and is_member(account) then call('HSET', key, 'unclean', '1') end
  if unclean ~= '' and used(account) == 0 and call('HEXISTS', key, 'unclean') == 1 and call('HEXISTS', K .. 'cleaning', account) == 0 then
    call('HDEL', key, 'unclean')
    set_cleaning(account, me)
    clean = account
  end
end
-- A repeated call after a lost reply: the deletion is still assigned to this node.
if was == 'unknown' and unclean ~= '' and ARGV[6] ~= '' and call('HGET', K .. 'cleaning', ARGV[6]) == me then clean = ARGV[6] end
return finish({ was, clean, unpack(seen) })

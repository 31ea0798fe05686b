-- Ends a lease or a waiter, with a health report (`health.lua`) and, if several pools are configured, one about the upstream
-- (`cooling.lua`). `unclean` is `1` if sessions were created that must be deleted once no node has a lease on the account; the
-- reply then assigns the deletion to this node. If it is empty, this node cannot delete and leaves that to the next lease. A
-- report about the upstream adds the delay of the cooling that it begins, `back` or nothing to the reply.
reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket, unclean = ARGV[4], ARGV[5]
local seen = report_at(6)
local cooled = S and S.upstream_report_at(14, ticket)
local was, account, p = close(me, ticket)
serve()
local clean = ''
if was == 'granted' and account ~= '' then
  local key = K .. 'health:' .. account
  if unclean == '1' and is_member(p, account) then call('HSET', key, 'unclean', '1') end
  if unclean ~= '' and used(p, account) == 0 and call('HEXISTS', key, 'unclean') == 1 and
    call('HEXISTS', p.k .. 'cleaning', account) == 0 then
    call('HDEL', key, 'unclean')
    set_cleaning(p, account, me)
    clean = account
  end
end
-- A repeated call after a lost reply: the deletion is still assigned to this node.
if was == 'unknown' and unclean ~= '' and ARGV[6] ~= '' and
  call('HGET', pool_of(ARGV[6]).k .. 'cleaning', ARGV[6]) == me then clean = ARGV[6] end
if ARGV[14] then seen = { seen[1] or '', seen[2] or '', seen[3] or '', cooled or '' } end
return finish({ was, clean, unpack(seen) })

-- Ends a lease or a waiter, with a health report (`health.lua`) and one about the upstream
-- (`cooling.lua`). `unclean` is `1` if sessions were created that must be deleted once no node has a lease on the account; the
-- reply then assigns the deletion to this node. If it is empty, this node cannot delete and leaves that to the next lease. A
-- report about the upstream adds the delay of the cooling that it begins, `back` or nothing to the reply. Behind these, `quota` and the
-- windows that an answer has stated of the account's quota may follow.
-- The very last one, `used`, is of a lease whose budgets were asked: whether it counts (1), its tokens, units and nanos; what is used of the
-- budgets of its account and its upstream is appended to the reply.
local counts, tokens, units, nanos = string.match(ARGV[#ARGV], '^used (%d) (%d+) (%d+) (%d+)$')
if counts then table.remove(ARGV) end
local windows = string.match(ARGV[#ARGV], '^quota (%S+)$')
if windows then table.remove(ARGV) end
-- Before these `memory`, a key and a text is what a turn leaves to the next one of its conversation.
local remembered, memory = string.match(ARGV[#ARGV], '^memory (%S+) (%S+)$')
if remembered then table.remove(ARGV) end

reap()
if not is_attached() then return finish({ 'lost' }) end
local ticket, unclean = ARGV[4], ARGV[5]
local seen = report_at(6)
local cooled = upstream_report_at(14, ticket)
local told = {}
if counts then
  load_budgets()
  told = B.settle(ticket, counts == '1', { tonumber(tokens), tonumber(units), tonumber(nanos) })
end
local was, account, p = close(me, ticket)
if windows and was == 'granted' and account ~= '' then learn_quota(account, windows) end
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
if remembered and was == 'granted' then
  keep_conversation('threads', remembered, memory)
end
if counts then return finish({ was, clean, seen[1] or '', seen[2] or '', seen[3] or '', cooled or '', unpack(told) }) end
if ARGV[14] then seen = { seen[1] or '', seen[2] or '', seen[3] or '', cooled or '' } end
return finish({ was, clean, unpack(seen) })

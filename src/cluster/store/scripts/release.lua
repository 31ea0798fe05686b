-- Ends a lease or a waiter. Arguments: the ticket, and a JSON object:
--   seen       if given, a report about the account (`health.lua`)
--   upstream   if given, what the try showed of the upstream: its verdict, the coolings before it, the request, seconds of `Retry-After`
--              (`retry`), and a random share (`cooling.lua`)
--   cleans     whether this node can delete sessions; else it leaves that to the next lease
--   unclean    whether sessions were created that must be deleted once no node has a lease on the account
--   quota      the windows that an answer has stated of the account's quota
--   memory     if given, a key and what a turn leaves to the next one of its conversation
--   used       of a lease whose budgets were asked: whether it counts, and the share that it has used
-- Returns what was ended, the account whose sessions this node must delete, the new state of the account with its fault's number and
-- delay, the delay of the cooling that begins or `back`, the time, and what is used of the budgets of its account and its upstream.
local ticket, ended = ARGV[4], cjson.decode(ARGV[5])
local changed = ended.seen and report(ended.seen) or {}
local cooled = ended.upstream and upstream_report(ticket, ended.upstream)
local told = ended.used and settle_budgets(ticket, ended.used.counted, ended.used.share) or {}
local was, account, p = close(me, ticket)
local is_account = was == 'granted' and account ~= ''
if is_account and ended.quota ~= '' then learn_quota(account, ended.quota) end
serve()
local clean = ''
if is_account then
  local a = account_of(account)
  if ended.unclean and a.member then changed_account(account).unclean = true end
  if ended.cleans and a.use == 0 and a.unclean and not a.cleaning then
    changed_account(account).unclean = nil
    set_cleaning(p, account, me)
    clean = account
  end
end
-- A repeated call after a lost reply: the deletion is still assigned to this node.
local seen = ended.cleans and was == 'unknown' and ended.seen
if seen and account_of(seen.account).cleaning == me then clean = seen.account end
if ended.memory and was == 'granted' then keep_conversation('threads', unpack(ended.memory)) end
return finish({ was, clean, changed[1] or '', changed[2] or '', changed[3] or '', cooled or '', unpack(told) })

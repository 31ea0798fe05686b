-- The state of accounts. For each: name, state, milliseconds until it recovers (or `inf`), slots in use, fault, last test,
-- epoch, token version, the stored token, the windows of its quota, whether it is at a budget (1), and what is used of its budgets
-- (`budgets.lua`).
reap()
finish()
local reply = {}
for _, account in ipairs(cjson.decode(ARGV[4])) do
  local state, till = state_of(account)
  local a = account_of(account)
  local left = till == INF and 'inf' or int(math.max(0, till - now))
  local all = { account, state, left, int(a.use), a.fault, a.tested, a.epoch, a.token,
    call('GET', K .. 'token:' .. account) or '', quota_of(account), budgeted and a.spent > 0 and '1' or '',
    budgeted and used_of_budgets(account) or '' }
  for _, fact in ipairs(all) do reply[#reply + 1] = fact end
end
return reply

-- The health of accounts. A report has an account and its verdict: `ok`, the name of a fault, `none`, or nothing. Only reports of attempts that
-- began after the last fault count (`since` is the account's epoch at that time); older ones can only worsen the state. That of a fault has
-- its state, the first and the longest delay, seconds that the upstream states (`retry`), and a random share.
local function delay_of(state, count, first, longest, retry, random)
  local delay = first * 2 ^ math.min(count - 1, 30) * (1 + random)
  if state == 'cooling' and retry then delay = math.max(0, retry * 1000) end
  return math.floor(math.min(delay, longest) + 0.5)
end

-- Returns the new state, the number of consecutive faults and the delay; empty if nothing changed. The number is 1 for an account that is
-- ready again after it was out.
local function report(seen)
  local account, since, verdict, state, retry, random = seen.account, seen.since, seen.verdict, seen.state, seen.retry, seen.random
  if not verdict then return {} end
  local p, a = pool_of(account), changed_account(account)
  if not a.member then return {} end
  local current, till = a.state, tonumber(a.till)
  local tried = current == 'out' and till == INF
  if since == 'try' and not tried then return {} end
  local fresh = since == 'always' or since == a.epoch
  if since == 'login' or since == 'try' then fresh = current ~= 'out' or tried end
  if verdict == 'ok' then
    if not fresh then return {} end
    if since ~= 'try' then a.fault, a.faults = '', 0 end
    restore(p, account)
    return current ~= 'ready' and { 'ready', current == 'out' and '1' or '0', '0' } or {}
  end
  if verdict == 'none' or (current == 'out' and state == 'cooling') then
    if since ~= 'try' or a.fault == '' then return {} end
    -- The probe itself failed, which says nothing about the account: the next one follows after the same delay.
    local delay = delay_of('out', a.faults, a.first, a.longest, nil, random)
    suspend(p, account, 'out', now + delay)
    return { 'out', int(a.faults), int(delay) }
  end
  if fresh or (current ~= 'out' and state == 'out') then
    local count = a.fault == verdict and a.faults + 1 or 1
    local stated = delay_of(state, count, seen.first, seen.longest, retry, random)
    local delay = math.min(stated, TRIED_AFTER)
    a.fault, a.faults, a.first, a.longest, a.epoch = verdict, count, seen.first, seen.longest, stamp()
    suspend(p, account, state, now + delay, now + stated)
    return { state, int(count), int(delay) }
  end
  if current ~= 'cooling' or not retry then return {} end
  local stated = delay_of(state, 1, seen.first, seen.longest, retry, random)
  if now + stated > math.max(till, a.stated) then
    suspend(p, account, 'cooling', now + math.min(stated, TRIED_AFTER), now + stated)
  end
  return {}
end

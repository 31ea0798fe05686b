-- When an upstream as a whole is left alone: `UpstreamCooling` over the fields of its pool. Random shares are arguments, with the
-- jitter applied.
local FIRST, LONGEST, LONGEST_ASKED, MOST_FAILURES = 1000, 60000, 600000, 3

local function asked(retry) return math.min(math.max(retry * 1000, FIRST), LONGEST_ASKED) end

-- Skips the pool, or takes it in again, by the time and by its probe. Returns whether that changes.
local function refresh(p)
  local skip = 'no'
  if p.till then skip = (now < p.till or p.probe) and 'yes' or 'probe' end
  if skip == p.skip then return false end
  set_skip(p, skip)
  return true
end

local function clear_failures(p) p.failures, p.failed, p.requests, p.changed = 0, nil, 0, true end

local function reset_cooling(p)
  p.till, p.probe, p.in_row = nil, nil, 0
  clear_failures(p)
  refresh(p)
end

local function cool(p, seen)
  local own = math.min(FIRST * 2 ^ math.min(p.in_row, 30) * (1 + seen.random), LONGEST)
  local delay = math.floor((seen.retry and asked(seen.retry) or own) + 0.5)
  p.cause = seen.verdict
  p.till, p.probe, p.in_row, p.coolings = now + delay, nil, p.in_row + 1, p.coolings + 1
  clear_failures(p)
  return delay
end

-- Notes the first event of a try: the upstream works. Returns whether it was cooled.
local function upstream_succeeded(p)
  if not p.till and p.in_row == 0 and p.failures == 0 then return false end
  local was_cooled = p.till ~= nil
  reset_cooling(p)
  serve()
  return was_cooled
end

-- Notes a failure of the upstream in the try of a lease. Returns the delay of the cooling that it begins.
local function upstream_failed(p, holder, seen)
  local retry, delay = seen.retry, nil
  p.changed = true
  if p.probe == holder then
    delay = cool(p, seen)
  elseif p.till then
    if not retry then return nil end
    p.till = math.max(p.till, now + asked(retry))
  elseif seen.coolings == int(p.coolings) then
    p.failures = p.failures + 1
    if not p.failed then
      p.failed, p.requests = seen.request, 1
    elseif p.failed ~= seen.request then
      p.requests = 2
    end
    if seen.verdict == 'connection' or (p.failures >= MOST_FAILURES and p.requests == 2) then
      delay = cool(p, seen)
    end
  else
    return nil
  end
  refresh(p)
  serve()
  return delay
end

-- Whether the configuration has one upstream, which is never left out.
local function is_single()
  local count = 0
  for _, p in ipairs(pools) do count = count + (p.leaving and 0 or 1) end
  return count == 1
end

-- Notes what the try of a lease showed of its upstream: `verdict` is `ok` or a fault. Returns the delay of the cooling that it begins, or
-- `back` if it ends one.
local function upstream_report(ticket, seen)
  local p = lease_of(me, ticket)
  if not p or p.leaving or is_single() then return nil end
  if seen.verdict == 'ok' then return upstream_succeeded(p) and 'back' or nil end
  local delay = upstream_failed(p, me .. '|' .. ticket, seen)
  return delay and int(delay)
end

-- Forgets a pool that has left the configuration and has no leases.
local function forget_pool(p)
  if not p.leaving or p.in_use > 0 then return end
  for _, key in ipairs({ 'roster', 'spare', 'used', 'lines', 'blocked', 'several', 'cool', 'untried' }) do
    call('DEL', p.k .. key)
  end
  remove_pool(p)
  by_name[p.name] = nil
  call('HDEL', K .. 'pools', p.name)
end

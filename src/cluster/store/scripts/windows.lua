-- What is used of the windows of limits: by business keys (`keys.lua`), and by accounts and upstreams of their budgets (`budgets.lua`). Each has
-- a hash of its windows, `usage:w:<key>`, whose fields are a window's letter, its first millisecond and `r` (requests), `t` (tokens), `c` (cost
-- in whole units) or `n` (nanos of cost beyond them, 0 to 10^9 - 1; each number stays exact so): usage including reservations. Cost is
-- written where there is any.
--
-- A share is tokens, units and nanos. A reservation is a key, a time and a share, and the letters of windows with strict limits, which reserve
-- the share `strict` in place of the other one. A limit is a letter, the most requests, tokens, units and nanos (-1 for none), and whether
-- it is strict (1).
local MINUTE, HOUR, DAY = 60000, 3600000, 86400000
local LETTERS = { 'm', 'h', 'd', 'w', 'M' }

-- The first millisecond of the month of a time. Counts days since 1 March 0000, in eras of 400 years.
local function month_of(time)
  local days = math.floor(time / DAY)
  local z = days + 719468
  local doe = z % 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local day = doy - math.floor((153 * math.floor((5 * doy + 2) / 153) + 2) / 5)
  return (days - day) * DAY
end

-- The windows of a time, by letter: of as many times as one call names.
local windows_by_time = {}
local function windows_at(time)
  windows_by_time[time] = windows_by_time[time] or {
    m = 'm' .. int(time - time % MINUTE), h = 'h' .. int(time - time % HOUR), d = 'd' .. int(time - time % DAY),
    w = 'w' .. int(time - (time - 4 * DAY) % (7 * DAY)), M = 'M' .. int(month_of(time))
  }
  return windows_by_time[time]
end

local function hash_of(key) return K .. 'usage:w:' .. key end

-- Adds a cost to a window. `nanos` may be negative.
local function add_cost(hash, window, units, nanos)
  local sum = call('HINCRBY', hash, window .. 'n', int(nanos))
  local carried = math.floor(sum / 1e9)
  if carried ~= 0 then call('HINCRBY', hash, window .. 'n', int(-carried * 1e9)) end
  call('HINCRBY', hash, window .. 'c', int(units + carried))
end

-- Of each letter, a key keeps the current window and the nearest ones with usage, so many on each side: a clock that jumps forth
-- and back finds its windows again.
local NEIGHBOURS = 2

-- Removes windows that are no neighbours of the current ones. A key has at most one window more for each letter.
local function remove_far(hash)
  local sides = {}
  for _, field in ipairs(call('HKEYS', hash)) do
    local letter, start, what = string.match(field, '^(%a)(%-?%d+)(%a)$')
    local distance = what == 'r' and tonumber(start) - tonumber(string.sub(windows_at(now)[letter], 2))
    if distance and distance ~= 0 then
      local side = letter .. (distance > 0 and '+' or '-')
      sides[side] = sides[side] or {}
      table.insert(sides[side], { math.abs(distance), letter .. start })
    end
  end
  for _, side in pairs(sides) do
    table.sort(side, function(one, other) return one[1] < other[1] end)
    for i = NEIGHBOURS + 1, #side do
      for _, what in ipairs({ 'r', 't', 'c', 'n' }) do call('HDEL', hash, side[i][2] .. what) end
    end
  end
end

-- The share of a reservation in a window.
local function share_in(reserved, letter)
  return string.find(reserved.letters, letter, 1, true) and reserved.strict or reserved.share
end

-- What was read of keys in this script.
local known_counts = {}

-- Adds requests and the shares of a reservation to the windows of its time that are current or kept.
local function add_usage(requests, reserved)
  local hash = hash_of(reserved.key)
  known_counts[reserved.key] = nil
  for letter, window in pairs(windows_at(reserved.time)) do
    local tokens, units, nanos = unpack(share_in(reserved, letter))
    if window == windows_at(now)[letter] or call('HEXISTS', hash, window .. 'r') == 1 then
      -- The first request of a window.
      if call('HINCRBY', hash, window .. 'r', int(requests)) == requests and requests > 0 then remove_far(hash) end
      call('HINCRBY', hash, window .. 't', int(tokens))
      if units ~= 0 or nanos ~= 0 then add_cost(hash, window, units, nanos) end
    end
  end
end

local function touch_key(key, time) call('ZADD', K .. 'usage:last', 'GT', int(time), key) end

-- Counts requests with what they reserve or have used.
local function count_usage(requests, reserved)
  add_usage(requests, reserved)
  touch_key(reserved.key, reserved.time)
end

-- Replaces a reservation by the share that was used; nothing, of a request that does not count.
local function settle_usage(reserved, counted, used)
  local function rest(share)
    local left = {}
    for i = 1, 3 do left[i] = (counted and used[i] or 0) - share[i] end
    return left
  end
  add_usage(counted and 0 or -1, {
    key = reserved.key, time = reserved.time, share = rest(reserved.share), letters = reserved.letters, strict = rest(reserved.strict)
  })
end

-- The usage of a key by window letter: requests, tokens, units and nanos.
local function used_of(key)
  if known_counts[key] then return known_counts[key] end
  local fields = {}
  for _, letter in ipairs(LETTERS) do
    for _, what in ipairs({ 'r', 't', 'c', 'n' }) do fields[#fields + 1] = windows_at(now)[letter] .. what end
  end
  local values = call('HMGET', hash_of(key), unpack(fields))
  local counts = {}
  for i, letter in ipairs(LETTERS) do
    counts[letter] = {}
    for place = 1, 4 do counts[letter][place] = tonumber(values[4 * (i - 1) + place]) or 0 end
  end
  known_counts[key] = counts
  return counts
end

local function append_windows(reply, key)
  local counts = used_of(key)
  for _, letter in ipairs(LETTERS) do
    for place = 1, 4 do reply[#reply + 1] = int(counts[letter][place]) end
  end
  return reply
end

-- The first millisecond after a current window.
local function end_of(letter)
  local start = tonumber(string.sub(windows_at(now)[letter], 2))
  if letter == 'M' then return month_of(start + 32 * DAY) end
  return start + ({ m = MINUTE, h = HOUR, d = DAY, w = 7 * DAY })[letter]
end

-- Whether tokens and a cost are more than a limit.
local function exceeds(limit, tokens, units, nanos)
  local _, _, most_tokens, most_units, most_nanos = unpack(limit)
  units, nanos = units + math.floor(nanos / 1e9), nanos % 1e9
  return (most_tokens >= 0 and tokens > most_tokens) or
    (most_units >= 0 and (units > most_units or (units == most_units and nanos > most_nanos)))
end

-- When the last window ends of which one more request with a reservation exceeds a limit; 0 if it fits. `NEVER` is added to the end of one
-- whose limit is smaller than the reservation.
local function full_until(limits, reserved)
  local counts, till = used_of(reserved.key), 0
  for _, limit in ipairs(limits) do
    local letter, most = unpack(limit)
    local requests, tokens, units, nanos = unpack(counts[letter])
    local share = share_in(reserved, letter)
    if (most >= 0 and requests + 1 > most) or exceeds(limit, tokens + share[1], units + share[2], nanos + share[3]) then
      till = math.max(till, end_of(letter) + (exceeds(limit, unpack(share)) and NEVER or 0))
    end
  end
  return till
end

-- Counts at least what a node has seen: keys with a time, and the usage of their windows then.
local function restore_seen(all)
  for _, seen in ipairs(all) do
    local key, time, windows = seen[1], seen[2], windows_at(seen[2])
    touch_key(key, time)
    known_counts[key] = nil
    for i, letter in ipairs(LETTERS) do
      if windows[letter] == windows_at(now)[letter] then
        local hash, window, first = hash_of(key), windows[letter], 4 * i - 1
        for j, what in ipairs({ 'r', 't' }) do
          local count = seen[first + j - 1]
          if count > (tonumber(call('HGET', hash, window .. what)) or 0) then call('HSET', hash, window .. what, int(count)) end
        end
        local units, nanos = seen[first + 2], seen[first + 3]
        local whole, rest = tonumber(call('HGET', hash, window .. 'c')) or 0, tonumber(call('HGET', hash, window .. 'n')) or 0
        if units > whole or (units == whole and nanos > rest) then
          call('HSET', hash, window .. 'c', int(units), window .. 'n', int(nanos))
        end
      end
    end
  end
end

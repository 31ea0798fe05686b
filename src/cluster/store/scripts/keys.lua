-- The limits and usage of business keys over all nodes. A key has a hash of its windows, `usage:w:<key>`, whose fields are
-- a window's letter, its first millisecond and `r` (requests), `t` (tokens), `c` (cost in whole units) or `n` (nanos of cost
-- beyond them, 0 to 10^9 - 1; each number stays exact so): usage including reservations. Cost is written where there is any. Requests of
-- keys with limits are admitted here and held by their node in `usage:adm:<node>`. For other requests the node reports how
-- many are active (`usage:held:<node>`) and their usage. Operations:
--   admit key ticket most tokens units nanos entered strict tokens units nanos (window requests tokens units nanos)...
--                                   admits one request if all limits allow it; `quiet` and how many milliseconds to wait
--                                   while nodes return to the store. `entered` is the ticket under which the request was
--                                   counted while its body arrived, or empty; the new one replaces it. `strict` has the
--                                   letters of the windows that reserve the second share in place of the first
--   look keys                       active requests and usage of keys (a JSON array)
--   tell batch settled used held keys
--                                   JSON arrays: tickets, whether they count, their tokens, units and nanos, and of an admitted
--                                   request the key, time, tokens, units and nanos of its reservation, and its strict windows
--                                   with their share, if there are any; keys, a time,
--                                   requests, tokens, units and nanos; keys and their number of active requests. A batch
--                                   counts once. Returns how many requests of the node are held here, the time, and the
--                                   windows of `keys`; `quiet` while nodes return to the store, because what they bring back
--                                   replaces smaller counts
--   sync tickets known last usage   restores the node's missing tickets (ticket, key, time, tokens, units, nanos), and
--                                   releases unknown ones up to the number `last`; `known` lists further tickets to keep.
--                                   `usage` is empty unless the store's data is older: keys with a time and the usage of
--                                   their windows then, which is counted at least. Released requests stay counted in that case
-- Every reply about a key is: active requests, last use, then requests, tokens, units and nanos of its five windows.
reap()
if not is_attached() then return finish({ 'lost' }) end
local op = ARGV[4]
local MINUTE, HOUR, DAY = 60000, 3600000, 86400000
local letters = { 'm', 'h', 'd', 'w', 'M' }

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

-- The windows of a time, by letter.
local function windows_at(time)
  return {
    m = 'm' .. int(time - time % MINUTE), h = 'h' .. int(time - time % HOUR), d = 'd' .. int(time - time % DAY),
    w = 'w' .. int(time - (time - 4 * DAY) % (7 * DAY)), M = 'M' .. int(month_of(time))
  }
end

local current = windows_at(now)
local is_current = {}
for _, window in pairs(current) do is_current[window] = true end

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
    local distance = what == 'r' and tonumber(start) - tonumber(string.sub(current[letter], 2))
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

-- Whether a window's letter is among those of strict windows, if there are any.
local function is_strict(strict, letter) return strict and string.find(strict, letter, 1, true) ~= nil end

-- Adds usage to the windows of a time that are current or kept. `strict` names windows that get other tokens and costs.
local function add(key, time, requests, plain_tokens, plain_units, plain_nanos, strict, strict_tokens, strict_units, strict_nanos)
  local hash = hash_of(key)
  for letter, window in pairs(windows_at(time)) do
    local tokens, units, nanos = plain_tokens, plain_units, plain_nanos
    if is_strict(strict, letter) then tokens, units, nanos = strict_tokens, strict_units, strict_nanos end
    if is_current[window] or call('HEXISTS', hash, window .. 'r') == 1 then
      -- The first request of a window.
      if call('HINCRBY', hash, window .. 'r', int(requests)) == requests and requests > 0 then remove_far(hash) end
      call('HINCRBY', hash, window .. 't', int(tokens))
      if units ~= 0 or nanos ~= 0 then add_cost(hash, window, units, nanos) end
    end
  end
end

local function under_way(key)
  local count = tonumber(call('HGET', K .. 'usage:use', key)) or 0
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
    count = count + (tonumber(call('HGET', K .. 'usage:held:' .. node, key)) or 0)
  end
  return count
end

-- The usage of a key by window letter: requests, tokens, units and nanos.
local function used_of(key)
  local fields = {}
  for _, letter in ipairs(letters) do
    for _, what in ipairs({ 'r', 't', 'c', 'n' }) do fields[#fields + 1] = current[letter] .. what end
  end
  local values = call('HMGET', hash_of(key), unpack(fields))
  local counts = {}
  for i, letter in ipairs(letters) do
    counts[letter] = {}
    for place = 1, 4 do counts[letter][place] = tonumber(values[4 * (i - 1) + place]) or 0 end
  end
  return counts
end

local function append_windows(reply, key)
  local counts = used_of(key)
  for _, letter in ipairs(letters) do
    for place = 1, 4 do reply[#reply + 1] = int(counts[letter][place]) end
  end
  return reply
end

local function append(reply, key)
  reply[#reply + 1] = int(under_way(key))
  reply[#reply + 1] = call('ZSCORE', K .. 'usage:last', key) or ''
  return append_windows(reply, key)
end

local function touch(key, time) call('ZADD', K .. 'usage:last', 'GT', int(time), key) end

-- A ticket holds its key, time and tokens, its units and nanos if it reserves a cost, and its strict windows with their share.
local function hold_key(ticket, key, time, tokens, units, nanos, strict, strict_tokens, strict_units, strict_nanos)
  local held = key .. ' ' .. int(time) .. ' ' .. int(tokens)
  if strict or units ~= 0 or nanos ~= 0 then held = held .. ' ' .. int(units) .. ' ' .. int(nanos) end
  if strict then
    held = held .. ' ' .. strict .. ' ' .. int(strict_tokens) .. ' ' .. int(strict_units) .. ' ' .. int(strict_nanos)
  end
  call('HSET', K .. 'usage:adm:' .. me, ticket, held)
  call('HINCRBY', K .. 'usage:use', key, 1)
end

-- Ends a request. If the node was dropped or the data is older, the request is not held; it counts if its key is given.
local function settle(ticket, counted, tokens, units, nanos, key, time, reserved, whole, rest, strict, most, most_whole, most_rest)
  local held = call('HGET', K .. 'usage:adm:' .. me, ticket)
  if held then
    key, time, reserved, whole, rest, strict, most, most_whole, most_rest =
      string.match(held, '^(%S+) (%S+) (%S+) ?(%S*) ?(%S*) ?(%S*) ?(%S*) ?(%S*) ?(%S*)$')
    call('HDEL', K .. 'usage:adm:' .. me, ticket)
    let_key_go(key)
  elseif not key then
    return
  end
  if not counted then tokens, units, nanos = 0, 0, 0 end
  local function less(a, b, c)
    return tokens - (tonumber(a) or 0), units - (tonumber(b) or 0), nanos - (tonumber(c) or 0)
  end
  local plain_tokens, plain_units, plain_nanos = less(reserved, whole, rest)
  add(key, tonumber(time), counted and 0 or -1, plain_tokens, plain_units, plain_nanos, strict, less(most, most_whole, most_rest))
end

if op == 'admit' then
  local key, ticket, most, tokens = ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
  local units, nanos = tonumber(ARGV[9]), tonumber(ARGV[10])
  local strict, strict_share = ARGV[12] ~= '' and ARGV[12] or nil, { tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15]) }
  local verdict = 'ok'
  if call('HEXISTS', K .. 'usage:adm:' .. me, ticket) == 0 then
    if quiet > now then return finish({ 'quiet', int(quiet - now) }) end
    if ARGV[11] ~= '' then settle(ARGV[11], false, 0, 0, 0) end
    if most and under_way(key) >= most then verdict = 'refused' end
    local counts = used_of(key)
    for i = 16, #ARGV, 5 do
      local count, requests, limit = counts[ARGV[i]], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
      local tokens, units, nanos = tokens, units, nanos
      if is_strict(strict, ARGV[i]) then tokens, units, nanos = unpack(strict_share) end
      if (requests and count[1] + 1 > requests) or (limit and count[2] + tokens > limit) then verdict = 'refused' end
      local most_units, most_nanos = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
      if most_units then
        local sum = count[4] + nanos
        local whole = count[3] + units + math.floor(sum / 1e9)
        if whole > most_units or (whole == most_units and sum % 1e9 > most_nanos) then verdict = 'refused' end
      end
    end
    if verdict == 'ok' then
      hold_key(ticket, key, now, tokens, units, nanos, strict, unpack(strict_share))
      add(key, now, 1, tokens, units, nanos, strict, unpack(strict_share))
      touch(key, now)
    end
  end
  return finish(append({ verdict, int(now) }, key))
elseif op == 'look' then
  local reply = { 'ok', int(now) }
  for _, key in ipairs(cjson.decode(ARGV[5])) do append(reply, key) end
  return finish(reply)
elseif op == 'tell' then
  if quiet > now then return finish({ 'quiet' }) end
  local last_batch = K .. 'usage:told:' .. me
  if call('GET', last_batch) ~= ARGV[5] then
    call('SET', last_batch, ARGV[5], 'PX', DAY)
    for _, one in ipairs(cjson.decode(ARGV[6])) do
      settle(one[1], one[2] == 1, unpack(one, 3))
    end
    for _, one in ipairs(cjson.decode(ARGV[7])) do
      add(one[1], one[2], one[3], one[4], one[5], one[6])
      touch(one[1], one[2])
    end
  end
  for _, one in ipairs(cjson.decode(ARGV[8])) do
    if one[2] > 0 then
      call('HSET', K .. 'usage:held:' .. me, one[1], one[2])
    else
      call('HDEL', K .. 'usage:held:' .. me, one[1])
    end
  end
  local reply = { 'ok', int(call('HLEN', K .. 'usage:adm:' .. me)), int(now) }
  for _, key in ipairs(cjson.decode(ARGV[9])) do append_windows(reply, key) end
  return finish(reply)
elseif op == 'sync' then
  local knows = {}
  for _, ticket in ipairs(cjson.decode(ARGV[6])) do knows[ticket] = true end
  for _, one in ipairs(cjson.decode(ARGV[5])) do
    knows[one[1]] = true
    if call('HEXISTS', K .. 'usage:adm:' .. me, one[1]) == 0 then hold_key(unpack(one)) end
  end
  for _, ticket in ipairs(call('HKEYS', K .. 'usage:adm:' .. me)) do
    if not knows[ticket] and tonumber(string.match(ticket, '(%d+)$')) <= tonumber(ARGV[7]) then
      if ARGV[8] == '' then
        settle(ticket, false, 0, 0, 0)
      else
        let_key_go(string.match(call('HGET', K .. 'usage:adm:' .. me, ticket), '^%S+'))
        call('HDEL', K .. 'usage:adm:' .. me, ticket)
      end
    end
  end
  -- The node tells its running requests of other keys again.
  if ARGV[8] ~= '' then call('DEL', K .. 'usage:held:' .. me) end
  for _, seen in ipairs(ARGV[8] == '' and {} or cjson.decode(ARGV[8])) do
    local key, time, windows = seen[1], seen[2], windows_at(seen[2])
    touch(key, time)
    for i, letter in ipairs(letters) do
      if is_current[windows[letter]] then
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
return finish({ 'ok' })

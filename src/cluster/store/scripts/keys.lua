-- The limits and usage of business keys over all nodes (`windows.lua`). Requests of keys with limits are admitted here and held by their
-- node in `usage:adm:<node>`. For other requests the node reports how many are active (`usage:held:<node>`) and their usage. Operations:
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
--                                   releases unknown ones up to the number `last`; `known` lists other tickets to keep.
--                                   `usage` is empty unless the store's data is older: keys with a time and the usage of
--                                   their windows then, which is counted at least. Released requests stay counted in that case
--   seen usage                      counts the usage of windows at least, as `sync` does
-- Every reply about a key is: active requests, last use, then requests, tokens, units and nanos of its five windows.
reap()
if not is_attached() then return finish({ 'lost' }) end
local op = ARGV[4]
load_windows()
local add, used_of, append_windows, touch, is_strict = W.add, W.used_of, W.append_windows, W.touch, W.is_strict

local function under_way(key)
  local count = tonumber(call('HGET', K .. 'usage:use', key)) or 0
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
    count = count + (tonumber(call('HGET', K .. 'usage:held:' .. node, key)) or 0)
  end
  return count
end

local function append(reply, key)
  reply[#reply + 1] = int(under_way(key))
  reply[#reply + 1] = call('ZSCORE', K .. 'usage:last', key) or ''
  return append_windows(reply, key)
end

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
      local share = is_strict(strict, ARGV[i]) and strict_share or { tokens, units, nanos }
      local requests, limit = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
      if W.exceeds(counts, share, ARGV[i], requests, limit, tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])) then verdict = 'refused' end
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
    call('SET', last_batch, ARGV[5], 'PX', 86400000)
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
  if ARGV[8] ~= '' then W.restore_seen(cjson.decode(ARGV[8])) end
elseif op == 'seen' then
  W.restore_seen(cjson.decode(ARGV[5]))
end
return finish({ 'ok' })

-- The limits and usage of business keys over all nodes (`windows.lua`). Requests of keys with limits are admitted here and held by their
-- node in `usage:adm:<node>`. For other requests the node reports how many are active (`usage:held:<node>`) and their usage. Operations, each
-- with a JSON value:
--   admit      { key, ticket, most, entered, reserved, limits }: admits one request if all limits allow it, and if fewer than `most` are
--              active; `quiet` and how many milliseconds to wait while nodes return to the store. `entered` is the ticket under which
--              the request was counted while its body arrived, or empty; the new one replaces it. `reserved` is its reservation
--   look       active requests and usage of keys
--   tell       { batch, requests, used, held, limited }: finished requests (ticket, whether it counts (1), the share that it has used, and of an
--              admitted one its reservation), the usage of others (requests, reservation), and keys and their number of active
--              requests. A batch counts once. Returns how many requests of the node are held here, the time, and the
--              windows of the keys `limited`; `quiet` while nodes return to the store, because what they bring back
--              replaces smaller counts
--   sync       { held, known, last, seen }: restores the node's missing tickets (ticket, reservation), and
--              releases unknown ones up to the number `last`; `known` lists other tickets to keep.
--              `seen` is there if the store's data is older: keys with a time and the usage of
--              their windows then, which is counted at least. Released requests stay counted in that case
--   seen       counts the usage of windows at least, as `sync` does
-- Every reply about a key is: active requests, last use, then requests, tokens, units and nanos of its five windows.
local op, asked = ARGV[4], cjson.decode(ARGV[5])
local admitted = K .. 'usage:adm:' .. me

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

local function hold_key(ticket, reserved)
  call('HSET', admitted, ticket, cjson.encode(reserved))
  call('HINCRBY', K .. 'usage:use', reserved.key, 1)
end

-- The reservation of a ticket that is held no more; nil without one.
local function let_go(ticket)
  local held = call('HGET', admitted, ticket)
  if not held then return nil end
  local reserved = cjson.decode(held)
  call('HDEL', admitted, ticket)
  let_key_go(reserved.key)
  return reserved
end

-- Ends a request. If the node was dropped or the data is older, the request is not held; it counts if its reservation is given.
local function settle(ticket, counted, used, given_reservation)
  local reserved = let_go(ticket) or given_reservation
  if reserved then settle_usage(reserved, counted, used) end
end

if op == 'admit' then
  local key, reserved, verdict = asked.key, asked.reserved, 'ok'
  reserved.time = now
  if call('HEXISTS', admitted, asked.ticket) == 0 then
    if quiet > now then return finish({ 'quiet', int(quiet - now) }) end
    if asked.entered ~= '' then settle(asked.entered, false) end
    if (asked.most and under_way(key) >= asked.most) or full_until(asked.limits, reserved) > 0 then
      verdict = 'refused'
    else
      hold_key(asked.ticket, reserved)
      count_usage(1, reserved)
    end
  end
  return finish(append({ verdict, int(now) }, key))
elseif op == 'look' then
  local reply = { 'ok', int(now) }
  for _, key in ipairs(asked) do append(reply, key) end
  return finish(reply)
elseif op == 'tell' then
  if quiet > now then return finish({ 'quiet' }) end
  local last_batch = K .. 'usage:told:' .. me
  if call('GET', last_batch) ~= asked.batch then
    call('SET', last_batch, asked.batch, 'PX', 86400000)
    for _, one in ipairs(asked.requests) do settle(one[1], one[2] == 1, one[3], one[4]) end
    for _, one in ipairs(asked.used) do count_usage(unpack(one)) end
  end
  for _, one in ipairs(asked.held) do
    if one[2] > 0 then
      call('HSET', K .. 'usage:held:' .. me, one[1], one[2])
    else
      call('HDEL', K .. 'usage:held:' .. me, one[1])
    end
  end
  local reply = { 'ok', int(call('HLEN', admitted)), int(now) }
  for _, key in ipairs(asked.limited) do append_windows(reply, key) end
  return finish(reply)
elseif op == 'sync' then
  local knows = {}
  for _, ticket in ipairs(asked.known) do knows[ticket] = true end
  for _, one in ipairs(asked.held) do
    knows[one[1]] = true
    if call('HEXISTS', admitted, one[1]) == 0 then hold_key(unpack(one)) end
  end
  for _, ticket in ipairs(call('HKEYS', admitted)) do
    if not knows[ticket] and tonumber(string.match(ticket, '(%d+)$')) <= asked.last then
      local reserved = let_go(ticket)
      if not asked.seen then settle_usage(reserved, false) end
    end
  end
  if asked.seen then
    -- The node tells its running requests of other keys again.
    call('DEL', K .. 'usage:held:' .. me)
    restore_seen(asked.seen)
  end
elseif op == 'seen' then
  restore_seen(asked)
end
return finish({ 'ok' })

-- Stored responses: a sealed body each, and the items of its conversation in pieces, which all responses of their owner that
-- have them share. When there are too many the share that holds most loses its oldest. Operations:
--   put name share body pieces seconds count bytes (piece sealed)...   stores it for so many seconds. `pieces` are names with
--                                  blanks between; those that are not there must be given, else: `missing` and their names
--   settle name body seconds count bytes     changes its body, where it is still there
--   remove name                              1 where it was there
--   held                                     how many, and their bytes
-- Keys: `resp-index` names by when they expire; `resp-facts` share and bytes of a name, `resp-items` its pieces; `item-refs`
-- and `item-facts` how many responses have a piece, its share and bytes; `share-count`, `share-bytes`, and `share:<share>`
-- names by their last change.
local K = 'gw:{main}:'
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local op, name = ARGV[4], ARGV[5]

local function int(number) return string.format('%.0f', number) end

local function weigh(share, bytes)
  call('INCRBY', K .. 'resp-bytes', int(bytes))
  if tonumber(call('ZINCRBY', K .. 'share-bytes', int(bytes), share)) <= 0 then call('ZREM', K .. 'share-bytes', share) end
end

local function let_go(piece)
  if call('HINCRBY', K .. 'item-refs', piece, -1) > 0 then return end
  local share, bytes = string.match(call('HGET', K .. 'item-facts', piece) or '- 0', '^(%S+) (%d+)$')
  call('HDEL', K .. 'item-refs', piece)
  call('HDEL', K .. 'item-facts', piece)
  call('DEL', K .. 'item:' .. piece)
  weigh(share, -tonumber(bytes))
end

local function drop(which)
  call('ZREM', K .. 'resp-index', which)
  local facts = call('HGET', K .. 'resp-facts', which)
  if not facts then return 0 end
  local share, bytes = string.match(facts, '^(%S+) (%d+)$')
  call('HDEL', K .. 'resp-facts', which)
  call('ZREM', K .. 'share:' .. share, which)
  if tonumber(call('ZINCRBY', K .. 'share-count', -1, share)) <= 0 then call('ZREM', K .. 'share-count', share) end
  weigh(share, -tonumber(bytes))
  for piece in string.gmatch(call('HGET', K .. 'resp-items', which) or '', '%S+') do let_go(piece) end
  call('HDEL', K .. 'resp-items', which)
  return call('DEL', K .. 'resp:' .. which)
end

local function bound(count, bytes)
  for _, old in ipairs(call('ZRANGEBYSCORE', K .. 'resp-index', '-inf', now, 'LIMIT', 0, 1000)) do drop(old) end
  while true do
    local most
    if (tonumber(call('GET', K .. 'resp-bytes')) or 0) > bytes then
      most = call('ZREVRANGE', K .. 'share-bytes', 0, 0)[1]
    elseif call('ZCARD', K .. 'resp-index') > count then
      most = call('ZREVRANGE', K .. 'share-count', 0, 0)[1]
    end
    local oldest = most and call('ZRANGE', K .. 'share:' .. most, 0, 0)[1]
    if not oldest then return end
    drop(oldest)
  end
end

-- The name, as the last of its share that changed.
local function note(which, share, bytes, seconds)
  call('HSET', K .. 'resp-facts', which, share .. ' ' .. int(bytes))
  call('ZADD', K .. 'resp-index', now + seconds * 1000, which)
  call('ZADD', K .. 'share:' .. share, now, which)
end

if op == 'put' then
  local share, body, pieces, seconds = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
  local given, missing = {}, { 'missing' }
  for i = 12, #ARGV, 2 do given[ARGV[i]] = ARGV[i + 1] end
  for piece in string.gmatch(pieces, '%S+') do
    if not given[piece] and call('EXISTS', K .. 'item:' .. piece) == 0 then missing[#missing + 1] = piece end
  end
  if #missing > 1 then return missing end
  for piece in string.gmatch(pieces, '%S+') do
    call('HINCRBY', K .. 'item-refs', piece, 1)
    if call('EXISTS', K .. 'item:' .. piece) == 1 then
      call('EXPIRE', K .. 'item:' .. piece, seconds, 'GT')
    else
      local known = call('HGET', K .. 'item-facts', piece)
      call('SET', K .. 'item:' .. piece, given[piece], 'EX', seconds)
      call('HSET', K .. 'item-facts', piece, share .. ' ' .. #given[piece])
      if not known then weigh(share, #given[piece]) end
    end
  end
  drop(name)
  call('SET', K .. 'resp:' .. name, body, 'EX', seconds)
  call('HSET', K .. 'resp-items', name, pieces)
  call('ZINCRBY', K .. 'share-count', 1, share)
  weigh(share, #body + #pieces)
  note(name, share, #body + #pieces, tonumber(seconds))
  bound(tonumber(ARGV[10]), tonumber(ARGV[11]))
elseif op == 'settle' then
  local facts = call('HGET', K .. 'resp-facts', name)
  if not facts or call('EXISTS', K .. 'resp:' .. name) == 0 then return { '0' } end
  local share, before = string.match(facts, '^(%S+) (%d+)$')
  local pieces = call('HGET', K .. 'resp-items', name)
  local bytes = #ARGV[6] + #pieces
  for piece in string.gmatch(pieces, '%S+') do call('EXPIRE', K .. 'item:' .. piece, ARGV[7], 'GT') end
  call('SET', K .. 'resp:' .. name, ARGV[6], 'EX', ARGV[7])
  weigh(share, bytes - tonumber(before))
  note(name, share, bytes, tonumber(ARGV[7]))
  bound(tonumber(ARGV[8]), tonumber(ARGV[9]))
elseif op == 'remove' then
  return { tostring(math.min(1, drop(name))) }
elseif op == 'held' then
  bound(math.huge, math.huge)
  return { tostring(call('ZCARD', K .. 'resp-index')), call('GET', K .. 'resp-bytes') or '0' }
end
return { '1' }

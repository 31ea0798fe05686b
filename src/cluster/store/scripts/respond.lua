-- Stored responses. Each is a list of encrypted chunks: those of its body first, then those of its items, which all
-- responses of the same owner share. Plain writes store the chunks beforehand; a chunk without a response expires. Above the
-- limits, the share with the most data loses its oldest response. Operations:
--   put name share body pieces seconds count bytes    stores a response for so many seconds. `pieces` are chunk names with
--                                  blanks between, the first `body` of them for its body; `missing` and the names of
--                                  missing chunks if there are any
--   settle name pieces seconds count bytes    replaces the body of an existing response, or returns `missing` as above
--   get name                                  the number of body chunks and all chunk names; empty if there is no response
--   remove name                               1 if it existed
--   forget pieces                             removes chunks without a response
--   bound count bytes                         removes responses above the limits
--   held                                      number of responses and their bytes
-- The work of one call is bounded; `more` means that another `bound` is needed.
-- Keys: `resp:<name>` number of body chunks, with the response's expiry; `resp-index` names by expiry; `resp-facts` share and
-- bytes of a name, `resp-items` its chunks; `item-refs` and `item-facts` number of responses with a chunk, its share and
-- bytes; `share-count`, `share-bytes`, and `share:<share>` names by their last change.
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local op, name = ARGV[4], ARGV[5]
-- Maximum number of responses and chunks that one call frees; freeing a chunk takes up to half a millisecond.
local budget = 100

local function weigh(share, bytes)
  call('INCRBY', K .. 'resp-bytes', int(bytes))
  if tonumber(call('ZINCRBY', K .. 'share-bytes', int(bytes), share)) <= 0 then call('ZREM', K .. 'share-bytes', share) end
end

local function let_go(piece)
  budget = budget - 1
  if call('HINCRBY', K .. 'item-refs', piece, -1) > 0 then return end
  local share, bytes = string.match(call('HGET', K .. 'item-facts', piece) or '- 0', '^(%S+) (%d+)$')
  call('HDEL', K .. 'item-refs', piece)
  call('HDEL', K .. 'item-facts', piece)
  call('UNLINK', K .. 'item:' .. piece)
  weigh(share, -tonumber(bytes))
end

local function drop(which)
  budget = budget - 1
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

-- Removes responses above the limits. Returns whether some remain.
local function bound(count, bytes)
  for _, old in ipairs(call('ZRANGEBYSCORE', K .. 'resp-index', '-inf', now, 'LIMIT', 0, budget)) do
    if budget <= 0 then return true end
    drop(old)
  end
  while true do
    local most
    if (tonumber(call('GET', K .. 'resp-bytes')) or 0) > bytes then
      most = call('ZREVRANGE', K .. 'share-bytes', 0, 0)[1]
    elseif call('ZCARD', K .. 'resp-index') > count then
      most = call('ZREVRANGE', K .. 'share-count', 0, 0)[1]
    end
    local oldest = most and call('ZRANGE', K .. 'share:' .. most, 0, 0)[1]
    if not oldest then return false end
    if budget <= 0 then return true end
    drop(oldest)
  end
end

local function bounded(count, bytes) return { bound(tonumber(count), tonumber(bytes)) and 'more' or '1' } end

-- Writes a response as the last change of its share. `before` are the bytes of its former chunk names.
local function write(which, share, body, pieces, seconds, before)
  call('SET', K .. 'resp:' .. which, body, 'EX', seconds)
  call('HSET', K .. 'resp-items', which, pieces)
  weigh(share, #pieces - before)
  call('HSET', K .. 'resp-facts', which, share .. ' ' .. int(#pieces))
  call('ZADD', K .. 'resp-index', now + seconds * 1000, which)
  call('ZADD', K .. 'share:' .. share, now, which)
end

-- `missing` and the names of missing chunks; nil if every chunk is there.
local function missing(pieces)
  local gone = { 'missing' }
  for piece in string.gmatch(pieces, '%S+') do
    if call('EXISTS', K .. 'item:' .. piece) == 0 then gone[#gone + 1] = piece end
  end
  return #gone > 1 and gone or nil
end

local function hold(pieces, share, seconds)
  for piece in string.gmatch(pieces, '%S+') do
    local key = K .. 'item:' .. piece
    -- A chunk without a response expires after the time for its writing.
    if call('HINCRBY', K .. 'item-refs', piece, 1) == 1 then
      call('EXPIRE', key, seconds)
    else
      call('EXPIRE', key, seconds, 'GT')
    end
    local bytes = call('STRLEN', key)
    if call('HSETNX', K .. 'item-facts', piece, share .. ' ' .. bytes) == 1 then weigh(share, bytes) end
  end
end

if op == 'put' then
  local share, body, pieces, seconds = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
  local gone = missing(pieces)
  if gone then return gone end
  hold(pieces, share, seconds)
  drop(name)
  call('ZINCRBY', K .. 'share-count', 1, share)
  write(name, share, body, pieces, seconds, 0)
  return bounded(ARGV[10], ARGV[11])
elseif op == 'settle' then
  local facts = call('HGET', K .. 'resp-facts', name)
  local before = tonumber(call('GET', K .. 'resp:' .. name) or '')
  if not facts or not before then return { '0' } end
  local gone = missing(ARGV[6])
  if gone then return gone end
  local share, bytes = string.match(facts, '^(%S+) (%d+)$')
  local seconds = ARGV[7]
  hold(ARGV[6], share, seconds)
  local pieces, body = {}, 0
  for piece in string.gmatch(ARGV[6], '%S+') do
    body = body + 1
    pieces[body] = piece
  end
  local place = 0
  for piece in string.gmatch(call('HGET', K .. 'resp-items', name), '%S+') do
    place = place + 1
    if place <= before then
      let_go(piece)
    else
      call('EXPIRE', K .. 'item:' .. piece, seconds, 'GT')
      pieces[#pieces + 1] = piece
    end
  end
  write(name, share, body, table.concat(pieces, ' '), seconds, tonumber(bytes))
  return bounded(ARGV[8], ARGV[9])
elseif op == 'get' then
  local body = tonumber(call('GET', K .. 'resp:' .. name) or '')
  if not body then return {} end
  return { int(body), call('HGET', K .. 'resp-items', name) or '' }
elseif op == 'remove' then
  return { tostring(math.min(1, drop(name))) }
elseif op == 'forget' then
  for piece in string.gmatch(ARGV[5], '%S+') do
    if call('HEXISTS', K .. 'item-refs', piece) == 0 then call('UNLINK', K .. 'item:' .. piece) end
  end
elseif op == 'bound' then
  return bounded(ARGV[5], ARGV[6])
elseif op == 'held' then
  bound(math.huge, math.huge)
  return { tostring(call('ZCARD', K .. 'resp-index')), call('GET', K .. 'resp-bytes') or '0' }
end
return { '1' }

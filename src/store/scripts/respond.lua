-- Stored responses: sealed texts under a name each, the oldest of which go first when there are too many.
--   put name body items seconds count bytes    stores it for so many seconds
--   settle name body seconds count bytes       changes its body, where it is still there
--   remove name                                1 where it was there
--   held                                       how many, and their bytes
local K = 'gw:{main}:'
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local op, name = ARGV[4], ARGV[5]

local function drop(which)
  local size = tonumber(call('HGET', K .. 'resp-sizes', which)) or 0
  call('ZREM', K .. 'resp-index', which)
  call('HDEL', K .. 'resp-sizes', which)
  if size > 0 then call('HINCRBY', K .. 'resp-sizes', '', -size) end
  return call('DEL', K .. 'resp:' .. which, K .. 'items:' .. which)
end

local function note(which, size, seconds)
  local before = tonumber(call('HGET', K .. 'resp-sizes', which)) or 0
  call('HSET', K .. 'resp-sizes', which, size)
  call('HINCRBY', K .. 'resp-sizes', '', size - before)
  call('ZADD', K .. 'resp-index', now + seconds * 1000, which)
end

local function bound(count, bytes)
  for _, old in ipairs(call('ZRANGEBYSCORE', K .. 'resp-index', '-inf', now, 'LIMIT', 0, 1000)) do drop(old) end
  while call('ZCARD', K .. 'resp-index') > count or (tonumber(call('HGET', K .. 'resp-sizes', '')) or 0) > bytes do
    local oldest = call('ZRANGE', K .. 'resp-index', 0, 0)[1]
    if oldest == nil then return end
    drop(oldest)
  end
end

if op == 'put' then
  local seconds = tonumber(ARGV[8])
  call('SET', K .. 'resp:' .. name, ARGV[6], 'EX', ARGV[8])
  call('SET', K .. 'items:' .. name, ARGV[7], 'EX', ARGV[8])
  note(name, #ARGV[6] + #ARGV[7], seconds)
  bound(tonumber(ARGV[9]), tonumber(ARGV[10]))
elseif op == 'settle' then
  if call('EXISTS', K .. 'resp:' .. name) == 0 then return { '0' } end
  call('SET', K .. 'resp:' .. name, ARGV[6], 'EX', ARGV[7])
  call('EXPIRE', K .. 'items:' .. name, ARGV[7])
  note(name, #ARGV[6] + call('STRLEN', K .. 'items:' .. name), tonumber(ARGV[7]))
  bound(tonumber(ARGV[8]), tonumber(ARGV[9]))
elseif op == 'remove' then
  return { tostring(math.min(1, drop(name))) }
elseif op == 'held' then
  bound(math.huge, math.huge)
  return { tostring(call('ZCARD', K .. 'resp-index')), call('HGET', K .. 'resp-sizes', '') or '0' }
end
return { '1' }

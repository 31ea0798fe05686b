-- Adds names with an expiry for all nodes. Arguments: a kind, whether to notify the other nodes immediately, and a JSON array
-- of names with their expiries. A name keeps its latest expiry. Expired names are removed, and beyond the maximum those
-- that expire first.
local MOST = 100000
local place = K .. 'marks:' .. ARGV[4]
for _, mark in ipairs(cjson.decode(ARGV[6])) do
  if mark[2] > now and call('ZADD', place, 'GT', 'CH', int(mark[2]), mark[1]) == 1 and ARGV[5] == '1' then
    tell('*', 'mark ' .. ARGV[4] .. ' ' .. int(mark[2]) .. ' ' .. mark[1])
  end
end
call('ZREMRANGEBYSCORE', place, '-inf', int(now))
call('ZREMRANGEBYRANK', place, 0, -MOST - 1)
return { 'ok' }

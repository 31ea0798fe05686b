-- Marks names until a time, for all nodes. Takes a kind, whether to notify the other nodes at once, and a JSON array of names
-- with their times. A name keeps its latest time; names whose time has come go, and beyond the bound those whose time comes
-- first.
local MOST = 100000
local place = K .. 'marks:' .. ARGV[4]
for _, mark in ipairs(cjson.decode(ARGV[6])) do
  if mark[2] > now and call('ZADD', place, 'GT', 'CH', int(mark[2]), mark[1]) == 1 and ARGV[5] == '1' then
    broadcast('mark ' .. ARGV[4] .. ' ' .. int(mark[2]) .. ' ' .. mark[1])
  end
end
call('ZREMRANGEBYSCORE', place, '-inf', int(now))
call('ZREMRANGEBYRANK', place, 0, -MOST - 1)
return { 'ok' }

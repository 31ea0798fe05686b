-- Questions of one node to others, sealed texts all of them. Operations:
--   ask id node sealed      tells the node, or all others where it is empty; who should answer
--   answer id asker pieces  tells the asker that the answer is there, in so many pieces
local op, id = ARGV[4], ARGV[5]
if op == 'ask' then
  local asked = {}
  for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
    if node ~= me and (ARGV[6] == '' or ARGV[6] == node) then
      asked[#asked + 1] = node
      call('PUBLISH', channel(node), '0\nask ' .. id .. ' ' .. me .. ' ' .. ARGV[7])
    end
  end
  return asked
elseif op == 'answer' then
  call('PUBLISH', channel(ARGV[6]), '0\nanswer ' .. id .. ' ' .. me .. ' ' .. ARGV[7])
end
return { 'ok' }

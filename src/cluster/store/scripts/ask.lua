-- Queries between nodes, with encrypted texts. Operations:
--   ask id node query        notifies the node, or all others if empty; returns the queried nodes
--   answer id asker chunks   notifies the asker that its reply is stored, in so many chunks
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

-- The shared configuration as it is stored. Argument: `whole` for the encrypted texts too. Returns the revision, its proof, the
-- revision by the count of `configure`, whether only documents with a proof are valid (1), the revision and the proof of the
-- document that the data began with, both documents (empty unless `whole`), the number of other nodes, of
-- those that have loaded a document and write proofs, and then the nodes of versions that write none.
local K = 'gw:{main}:'
local call = redis.call
local function fields(...)
  local values = call('HMGET', K .. 'config', ...)
  for i = 1, #values do values[i] = values[i] or '' end
  return values
end
local found = fields('revision', 'proof', 'proven', 'origin_revision', 'origin_proof')
local texts = ARGV[4] == 'whole' and fields('document', 'origin') or { '', '' }
local reply = {
  found[1], found[2], call('HGET', K .. 'lim', 'revision') or '', found[3], found[4], found[5], texts[1], texts[2]
}
local others, running, unproving = 0, 0, {}
for _, node in ipairs(call('ZRANGE', K .. 'nodes', 0, -1)) do
  if node ~= ARGV[2] then others = others + 1 end
  local facts = call('HMGET', K .. 'node:' .. node, 'proves', 'revision')
  if not facts[1] then
    unproving[#unproving + 1] = node
  elseif node ~= ARGV[2] and facts[2] and facts[2] ~= '0' then
    running = running + 1
  end
end
reply[#reply + 1], reply[#reply + 2] = tostring(others), tostring(running)
for _, node in ipairs(unproving) do reply[#reply + 1] = node end
return reply

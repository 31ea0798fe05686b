-- The shared configuration as it is stored. Argument: `whole` for the encrypted texts too. Returns the revision, its proof, the
-- revision by the count of `configure`, the revision and the proof of the document that the data began with, both documents (empty
-- unless `whole`), and the number of other nodes.
local function fields(...)
  local values = call('HMGET', K .. 'config', ...)
  for i = 1, #values do values[i] = values[i] or '' end
  return values
end
local found = fields('revision', 'proof', 'origin_revision', 'origin_proof')
local texts = ARGV[4] == 'whole' and fields('document', 'origin') or { '', '' }
local others = call('ZCARD', K .. 'nodes') - (call('ZSCORE', K .. 'nodes', ARGV[2]) and 1 or 0)
return {
  found[1], found[2], call('HGET', K .. 'lim', 'revision') or '', found[3], found[4], texts[1], texts[2],
  int(others)
}

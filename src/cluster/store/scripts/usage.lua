-- The usage history, and the usage of sessions: `usage:s:<key, session>` is a hash of buckets, `usage:sessions` has the time of each
-- session's last use, and `usage:first` its first hour. In the history, the buckets of an hour are a hash, `usage:h:<its first millisecond>`, from a bucket's names to its sums
-- and errors (`<code>=<count>`), with blanks between; `usage:hours` lists the hours. Operations:
--   add batch buckets most rows
--                           adds buckets, a JSON array of hour, names, sums, errors; a batch counts once. A bucket of a session has the
--                           session, the time of its last use, and the names without an agent too: a session that has as many buckets
--                           as `rows` gets no more agents. Beyond `most` sessions, those used longest ago are removed.
--   age hour                removes the buckets of some sessions from before an hour; returns of how many sessions
--   fold hour day           merges an hour into a day, some buckets per call; returns how many are left
--   begin day turn          begins to sum a day by each dimension, for the caller with this turn
--   sum day turn fields last
--                           writes some of the sums, a JSON array of dimension, value, sums with errors, to `usage:d:<day>:<dimension>`; with
--                           the last ones `usage:days` lists the day. Returns 0 if buckets were added to the day since its turn began
--   unsum day               discards the sums of some days from before a day; returns of how many
--   drop hour               removes an hour or a day that is too old; returns how many buckets it had
--   forget time             removes the windows (`keys.lua`) of some keys that were last used before a time; returns how many
local op = ARGV[4]

-- Adds what a bucket has to sums and errors.
local function read(text, sums, errors)
  local i = 0
  for word in string.gmatch(text, '%S+') do
    local code, count = string.match(word, '^(.+)=(%d+)$')
    if code then
      errors[code] = (errors[code] or 0) + tonumber(count)
    else
      i = i + 1
      sums[i] = (sums[i] or 0) + tonumber(word)
    end
  end
end

local function merge(hash, names, sums, errors)
  read(call('HGET', hash, names) or '', sums, errors)
  -- Whole units of cost and of wasted cost are moved out of their nanos, which follow them and stay exact.
  for _, i in ipairs({ 18, 21 }) do
    if sums[i + 1] and sums[i + 1] >= 1e9 then
      sums[i], sums[i + 1] = sums[i] + math.floor(sums[i + 1] / 1e9), sums[i + 1] % 1e9
    end
  end
  local words = {}
  for i, sum in ipairs(sums) do words[i] = int(sum) end
  for code, count in pairs(errors) do words[#words + 1] = code .. '=' .. int(count) end
  call('HSET', hash, names, table.concat(words, ' '))
end

local function add_session(hour, names, sums, errors, session, at, without_agent)
  local hash = K .. 'usage:s:' .. session
  if call('HLEN', hash) >= tonumber(ARGV[8]) and call('HEXISTS', hash, names) == 0 then names = without_agent end
  merge(hash, names, sums, errors)
  local last = call('ZSCORE', K .. 'usage:sessions', session)
  if not last or tonumber(last) < at then call('ZADD', K .. 'usage:sessions', int(at), session) end
  local first = call('ZSCORE', K .. 'usage:first', session)
  if not first or tonumber(first) > hour then call('ZADD', K .. 'usage:first', int(hour), session) end
end

local function remove_session(session)
  call('UNLINK', K .. 'usage:s:' .. session)
  call('ZREM', K .. 'usage:sessions', session)
  call('ZREM', K .. 'usage:first', session)
end

local function discard_sums(day)
  call('ZREM', K .. 'usage:days', day)
  for _, dimension in ipairs({ 'key', 'model', 'account', 'style', 'upstream', 'target', 'app' }) do
    call('UNLINK', K .. 'usage:d:' .. day .. ':' .. dimension)
  end
end

if op == 'add' then
  local last_batch = K .. 'usage:added:' .. ARGV[2]
  if call('GET', last_batch) == ARGV[5] then return { 'ok' } end
  call('SET', last_batch, ARGV[5], 'PX', 86400000)
  local changed = {}
  for _, bucket in ipairs(cjson.decode(ARGV[6])) do
    if bucket[5] then
      add_session(unpack(bucket))
    else
      local hour = int(bucket[1])
      merge(K .. 'usage:h:' .. hour, bucket[2], bucket[3], bucket[4])
      call('ZADD', K .. 'usage:hours', hour, hour)
      changed[int(bucket[1] - bucket[1] % 86400000)] = true
    end
  end
  -- A day that gets more is no longer summed.
  for day in pairs(changed) do
    call('ZREM', K .. 'usage:days', day)
    call('DEL', K .. 'usage:summing:' .. day)
  end
  -- A call adds at most as many sessions as buckets, so it removes no more.
  local surplus = call('ZCARD', K .. 'usage:sessions') - tonumber(ARGV[7])
  if surplus > 0 then
    for _, session in ipairs(call('ZRANGE', K .. 'usage:sessions', 0, surplus - 1)) do remove_session(session) end
  end
elseif op == 'age' then
  local before = tonumber(ARGV[5])
  local sessions = call('ZRANGEBYSCORE', K .. 'usage:first', '-inf', '(' .. ARGV[5], 'LIMIT', 0, 20)
  for _, session in ipairs(sessions) do
    local first
    for _, names in ipairs(call('HKEYS', K .. 'usage:s:' .. session)) do
      local hour = tonumber(string.match(names, '^%d+'))
      if hour < before then
        call('HDEL', K .. 'usage:s:' .. session, names)
      elseif not first or hour < first then
        first = hour
      end
    end
    if first then call('ZADD', K .. 'usage:first', int(first), session) else remove_session(session) end
  end
  return { 'ok', int(#sessions) }
elseif op == 'fold' then
  local from, into = K .. 'usage:h:' .. ARGV[5], K .. 'usage:h:' .. ARGV[6]
  local some = call('HSCAN', from, '0', 'COUNT', 200)[2]
  for i = 1, #some, 2 do
    local sums, errors = {}, {}
    read(some[i + 1], sums, errors)
    merge(into, some[i], sums, errors)
    call('HDEL', from, some[i])
  end
  call('ZADD', K .. 'usage:hours', ARGV[6], ARGV[6])
  local left = call('HLEN', from)
  if left == 0 then call('ZREM', K .. 'usage:hours', ARGV[5]) end
  return { 'ok', int(left) }
elseif op == 'begin' then
  call('SET', K .. 'usage:summing:' .. ARGV[5], ARGV[6], 'PX', 600000)
elseif op == 'sum' then
  local summing = K .. 'usage:summing:' .. ARGV[5]
  if call('GET', summing) ~= ARGV[6] then return { 'ok', '0' } end
  for _, field in ipairs(cjson.decode(ARGV[7])) do
    call('HSET', K .. 'usage:d:' .. ARGV[5] .. ':' .. field[1], field[2], field[3])
  end
  if ARGV[8] == '1' then
    call('ZADD', K .. 'usage:days', ARGV[5], ARGV[5])
    call('DEL', summing)
  end
  return { 'ok', '1' }
elseif op == 'unsum' then
  local days = call('ZRANGEBYSCORE', K .. 'usage:days', '-inf', '(' .. ARGV[5], 'LIMIT', 0, 20)
  for _, day in ipairs(days) do discard_sums(day) end
  return { 'ok', int(#days) }
elseif op == 'drop' then
  local had = call('HLEN', K .. 'usage:h:' .. ARGV[5])
  call('UNLINK', K .. 'usage:h:' .. ARGV[5])
  call('ZREM', K .. 'usage:hours', ARGV[5])
  discard_sums(ARGV[5])
  return { 'ok', int(had) }
elseif op == 'forget' then
  local keys = call('ZRANGEBYSCORE', K .. 'usage:last', '-inf', '(' .. ARGV[5], 'LIMIT', 0, 100)
  for _, key in ipairs(keys) do
    call('ZREM', K .. 'usage:last', key)
    call('DEL', K .. 'usage:w:' .. key)
  end
  return { 'ok', int(#keys) }
end
return { 'ok' }

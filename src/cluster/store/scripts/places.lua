-- Changes a claim of a request that names pools. Operations:
--   widen ticket        ends its hold at the first pool: it waits at the others too
--   drop ticket pool    gives up its place in a pool, whose upstream no longer has the model
--   works ticket        the upstream of its lease has sent the first event; the reply is `back` if that ends a cooling
--   answered ticket continued lifetime keys
--                       the account of its lease answers a sticky conversation, which prefers it for so many milliseconds from now on; the
--                       reply is `hit` or `move` if the conversation is a continued one (1) that an account is known of
-- The first two reply as `acquire` does; `gone` without a lease or a place.
reap()
if not is_attached() then return finish({ 'lost' }) end
local op, ticket = ARGV[4], ARGV[5]
local p, account, fence = lease_of(me, ticket)
if op == 'works' then
  local was_cooled = p and not p.leaving and S and S.upstream_succeeded(p)
  return finish({ was_cooled and 'back' or 'ok' })
end
if op == 'answered' then
  local met = ''
  if p and account ~= '' then
    local _, _, last = sticky_of(ARGV[8])
    if ARGV[6] == '1' and last then met = last == account and 'hit' or 'move' end
    keep_conversation('sticky', string.match(ARGV[8], '^%S+'), int(now + tonumber(ARGV[7])) .. ' ' .. p.name .. ' ' .. account)
  end
  return finish({ met })
end
local record = S and S.record_of(me, ticket)
if record then
  if op == 'widen' then
    S.widen(record)
  else
    for _, target in ipairs(S.configured(ARGV[6]) and record.targets or {}) do
      if target[1] == ARGV[6] then
        if S.is_place(target) then
          S.give_up(record, target, 'Unavailable')
        else
          target[3] = 'gone'
          S.touch(record)
        end
        break
      end
    end
  end
  serve()
  p, account, fence = lease_of(me, ticket)
  record = S and S.record_of(me, ticket)
end
local waits = call('HGET', K .. 'tickets:' .. me, ticket)
if waits and not record then
  -- A request that waits for `default` alone.
  if op == 'widen' or ARGV[6] ~= 'default' then return finish({ 'waiting', string.match(waits, '^%S+') }) end
  leave(me, ticket, string.match(waits, '(%S+)$'))
  notify(me, 'refuse ' .. ticket .. ' Unavailable 0')
end
if p then return finish({ 'granted', unpack(grant_of(p, me, ticket, account, fence)) }) end
return finish(record and { 'waiting', int(record.number), record.holding and '1' or '0' } or { 'gone' })
